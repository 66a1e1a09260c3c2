"""The paper's experiments by name, and a page that sets its claims beside what was measured."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path

from .claims import write_claims
from .description import Description, read_description
from .output import refuse_other, require_packages
from .runner import Finished, Settings, run_experiment
from .world import load_table

__all__ = ["EXPERIMENTS", "UnknownExperimentError", "describe", "reproduce"]

EXPERIMENTS = ("synthetic-mar", "synthetic-mnar", "double-robustness", "heloc", "income")

Tell = Callable[[str, int, int], None]


class UnknownExperimentError(ValueError):
    """There is no experiment of that name."""


def describe(name: str) -> Path:
    """The TOML file that describes an experiment of the paper."""
    if name not in EXPERIMENTS:
        close = get_close_matches(str(name), EXPERIMENTS, 1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UnknownExperimentError(
            f"There is no experiment {name!r}. The experiments are {', '.join(EXPERIMENTS)}, or all.{hint}"
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
    names = EXPERIMENTS if name == "all" else (name,)
    described = [read_description(describe(n), quick=quick) for n in names]
    if draws is not None:
        described = [_reduced(d, draws) for d in described]
    places = [folder / n for n in names] if name == "all" else [folder]
    settings = settings or Settings()
    for d, place in zip(described, places, strict=True):  # what stands in the way of one is told before any is run
        require_packages(d)
        refuse_other(place, d, settings.seed)
        if d.table.source != "synthetic":
            load_table(d, settings.data)
    done = [run_experiment(d, place, settings, tell) for d, place in zip(described, places, strict=True)]
    if name == "all":
        write_claims(done, folder)
    return done


def _reduced(description: Description, draws: int) -> Description:
    if draws < 2:
        raise ValueError(f"'draws' must be at least 2, to measure a spread, but is {draws!r}.")
    return description.reduced(draws)
