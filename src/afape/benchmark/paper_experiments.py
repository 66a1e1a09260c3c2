"""The paper's experiments by name, and a page that sets its claims beside what was measured."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from pathlib import Path

from ..arguments import check_folder, did_you_mean
from .claims import write_claims
from .description import read_description
from .output import refuse_other, require_packages
from .runner import Finished, Settings, checked_settings, run_experiment
from .world import load_table

__all__ = ["EXPERIMENTS", "UnknownExperimentError", "describe", "reproduce"]

EXPERIMENTS = ("synthetic-mar", "synthetic-mnar", "double-robustness", "heloc", "income")

Tell = Callable[[str, int, int], None]


class UnknownExperimentError(ValueError):
    """There is no experiment of that name."""


def describe(name: str) -> Path:
    """The TOML file that describes an experiment of the paper."""
    if not isinstance(name, str) or name not in EXPERIMENTS:
        hint = did_you_mean(name, EXPERIMENTS)
        raise UnknownExperimentError(
            f"'name' must be one of {', '.join(EXPERIMENTS)}, or all, but there is no experiment {name!r}.{hint}"
        )
    return Path(str(files("afape.benchmark") / "paper" / f"{name}.toml"))


def reproduce(
    name: str,
    folder: Path,
    settings: Settings | None = None,
    *,
    quick: bool = False,
    draws: int | None = None,
    tell: Tell | None = None,
) -> list[Finished]:
    """Run an experiment of the paper, or ``all`` of them.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`, or "all".
    folder : Path
        Where results go; of ``all``, each in a folder of its own inside it, with a page of the paper's claims.
    settings : Settings, optional
        Seed, processes, where the real tables are.
    quick : bool
        A reduced run that shows that everything works, and nothing else.
    draws : int, optional
        At most so many data sets of each size.
    tell : callable, optional
        Told what is done, how much of it and of how much.
    """
    folder, settings = check_folder("folder", folder), checked_settings(settings, tell)
    names = EXPERIMENTS if isinstance(name, str) and name == "all" else (name,)
    described = [read_description(describe(n), quick=quick) for n in names]
    if draws is not None:
        described = [d.reduced(draws) for d in described]
    places = [folder / n for n in names] if name == "all" else [folder]
    for d, place in zip(described, places, strict=True):  # what stands in the way of one is told before any is run
        require_packages(d)
        refuse_other(place, d, settings.seed)
        if d.table.source != "synthetic":
            load_table(d, settings.data)
    done = [run_experiment(d, place, settings, tell) for d, place in zip(described, places, strict=True)]
    if name == "all":
        write_claims(done, folder)
    return done
