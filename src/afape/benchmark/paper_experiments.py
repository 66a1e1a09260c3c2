"""The paper's experiments, by name."""

from __future__ import annotations

from pathlib import Path

from .._arguments import check_folder, did_you_mean, shown
from .claims_page import write_claims
from .description import read_description
from .identity import identity_of
from .manifest import refuse_other
from .runner import Finished, Settings, check_settings, require_packages, run_experiment
from .world import Tell, complete_table

__all__ = ["EXPERIMENTS", "UnknownExperimentError", "describe", "reproduce"]

EXPERIMENTS = ("synthetic-mar", "synthetic-mnar", "double-robustness", "heloc", "income")


class UnknownExperimentError(ValueError):
    """The paper has no experiment of this name."""


def describe(name: str) -> Path:
    """Return the path of the TOML file that describes an experiment of the paper."""
    if not isinstance(name, str) or name not in EXPERIMENTS:
        hint = did_you_mean(name, EXPERIMENTS)
        raise UnknownExperimentError(
            f"'name' must be one of {', '.join(EXPERIMENTS)}, or all, but is {shown(name)}.{hint}"
        )
    return Path(__file__).parent / "paper" / f"{name}.toml"


def reproduce(
    name: str,
    folder: Path,
    settings: Settings | None = None,
    *,
    quick: bool = False,
    full: bool = False,
    draws: int | None = None,
    tell: Tell | None = None,
) -> list[Finished]:
    """Run an experiment of the paper, or all of them.

    Parameters
    ----------
    name : str
        One of `EXPERIMENTS`, or "all".
    folder : Path
        Folder of the results. For "all" it gets one folder per experiment, and a page about the paper's claims.
    settings : Settings, optional
        Seed, number of processes, path of the real tables.
    quick : bool
        True for a reduced run, which only shows that everything works.
    full : bool
        True for data sets of the paper's sizes in all runs, which takes many hours.
    draws : int, optional
        Largest number of data sets of each size.
    tell : callable, optional
        Called as ``tell(step, done, total)`` to report progress.
    """
    folder, settings = check_folder("folder", folder), check_settings(settings, tell)
    names = EXPERIMENTS if isinstance(name, str) and name == "all" else (name,)
    described = [read_description(describe(n), quick=quick, full=full) for n in names]
    if draws is not None:
        described = [d.reduced(draws) for d in described]
    places = [folder / n for n in names] if name == "all" else [folder]
    for d, place in zip(
        described, places, strict=True
    ):  # problems of any experiment are found before the first one runs
        require_packages(d)
        refuse_other(place, identity_of(d, complete_table(d, settings.data, settings.seed), settings.seed))
    done = [run_experiment(d, place, settings, tell) for d, place in zip(described, places, strict=True)]
    if name == "all":
        write_claims(done, folder)
    return done
