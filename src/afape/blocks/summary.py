"""Summary: what a block of rows, or a site, leaves behind. Values, joint covariance, counts and tables, but no row."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from .. import __version__
from .._arguments import check_count, check_file, check_instance, check_target
from .._arrays import Floats
from ..data.retrospective import Retrospective
from ..data.row_counts import RowCounts
from ..estimators.answer import Answer, Costs, PartAmounts
from ..files.archive import array_bytes, zipped
from ..files.errors import StorageError
from ..files.limits import Allowance, checked_array
from ..files.writing import atomic_write, plain_value
from ..missingness.assumptions import MAR, MCAR, MNAR
from ..missingness.graph import MGraph
from ..results.comparison import Comparison
from ..results.evaluation import Evaluation
from ..results.small_cells import without_small
from ..support.implications import check_implications, implications
from ..support.support import Support
from .columns import BlockColumns

__all__ = [
    "Summary",
    "assumption_from_json",
    "described_to_json",
    "lines_of",
    "plain_json",
    "support_to_json",
]

FORMAT = 1
SUPPORT_TABLES = ("sets", "groups", "pairs", "views", "violations", "balance", "undecided", "estimators")
_FIGURES = ("reason", "ess", "normalizer", "normalizer_error", "normalizers", "clipped", "largest_weight", "error_method",
            "caveat", "replicates", "lost", "unsupported")  # fmt: skip


@dataclass(frozen=True, eq=False)
class Summary:
    """What is left of a comparison when its rows are gone.

    It has the estimates of all policies, estimators, parts and subgroups with their joint covariance, numbers of rows by
    pattern of recorded groups and by label, and the tables of support. No row can be read back from it.

    Attributes
    ----------
    about : dict
        Texts, numbers and tables, ready for JSON.
    arrays : dict of ndarray
        Values and covariances of all columns.
    """

    about: dict[str, Any]
    arrays: dict[str, Floats]

    @staticmethod
    def of(result: Comparison | Evaluation, min_cell: int = 10) -> Summary:
        """Summarise a result of `afape.compare` or `afape.evaluate`.

        Parameters
        ----------
        result : Comparison or Evaluation
            A result that still has its rows.
        min_cell : int
            Patterns of recording, subgroups, levels and numbers of rows below this are left out, and estimators with fewer
            effective rows. Values that belong to one row, such as the largest weight, are left out. A label with fewer rows is
            an error.
        """
        check_instance("result", result, (Comparison, Evaluation), "a result of afape.compare or afape.evaluate")
        check_count("min_cell", min_cell, 0)
        found = result if isinstance(result, Comparison) else Comparison({result.policy: result}, result.confidence)
        first = next(iter(found.evaluations.values()))
        if first.origin is None or not isinstance(first.origin.data, Retrospective):
            raise ValueError(
                "'result' must come from rows in memory, but its rows are gone. Use the summaries of its blocks."
            )
        data, missingness = first.origin.data, first.origin.missingness
        described = first.origin.counts
        if min_cell:
            _check_sizes(described, min_cell)
            found = _without_few(without_small(found, described, min_cell), min_cell)
        collected = BlockColumns()
        tests = check_implications(data, implications(missingness.graph_on(data)))
        about = {
            "format": "afape summary",
            "format_version": FORMAT,
            "afape": __version__,
            "cases": float(data.row_weight.sum()),
            "confidence": found.confidence,
            "missingness": first.missingness,
            "assumption": assumption_to_json(missingness),
            "classifier": first.classifier,
            "seed": first.origin.seed,
            "provenance": None if first.provenance is None else first.provenance.to_dict(),
            "records": described_to_json(described, min_cell),
            "tests": lines_of(tests),
            "labels": None if (labels := first.origin.label_shares) is None else collected.add(labels),
            "policies": {name: _evaluation(e, data, collected) for name, e in found.evaluations.items()},
        }
        return Summary(plain_json(about), collected.arrays())

    def __len__(self) -> int:
        return int(self.about["records"]["n_rows"])

    def __repr__(self) -> str:
        policies = self.about["policies"]
        return f"Summary({len(self)} rows, {len(policies)} policies: {', '.join(policies)})"

    def save(self, path: str | Path) -> None:
        """Save as a zip of JSON and arrays; it contains no code."""
        with atomic_write(check_target("path", path)) as temporary:
            temporary.write_bytes(self.packed())

    def packed(self) -> bytes:
        """Return the bytes of the file."""
        names = list(self.arrays)
        text = json.dumps({**self.about, "arrays": names}, indent=1)
        arrays = {f"arrays/{i}.npy": array_bytes(name, self.arrays[name]) for i, name in enumerate(names)}
        return zipped({"summary.json": text.encode(), **arrays})

    @property
    def identity(self) -> str:
        """Text that is equal for equal summaries."""
        return hashlib.sha256(self.packed()).hexdigest()[:16]

    @staticmethod
    def load(path: str | Path) -> Summary:
        """Load a file that `save` wrote."""
        return Summary.unpacked(check_file("path", path, "a file that Summary.save wrote").read_bytes(), str(path))

    @staticmethod
    def unpacked(content: bytes, name: str) -> Summary:
        """Return the summary in these bytes; errors call the file by its ``name``."""
        try:
            archive = Allowance(len(content)).open(content)
            about = json.loads(archive.read("summary.json"))
            version = about.get("format_version") if about.get("format") == "afape summary" else None
            if version == FORMAT:
                names = about.pop("arrays")
                return Summary(about, {n: checked_array(archive.read(f"arrays/{i}.npy")) for i, n in enumerate(names)})
        except (zipfile.BadZipFile, KeyError, ValueError, TypeError, AttributeError) as error:
            raise StorageError(f"{name!r} is no summary, or is damaged ({type(error).__name__}: {error}).") from error
        raise StorageError(
            f"{name!r} has format version {version}, but this afape reads summaries of version {FORMAT}."
        )


def _check_sizes(found: RowCounts, min_cell: int) -> None:
    least = int(found.label_counts.min())
    if least < min_cell:
        label = found.classes[int(found.label_counts.argmin())]
        raise ValueError(
            f"'result' must have at least min_cell={min_cell} rows of every label, but has {least} of {label!r}. Shares "
            "of labels would tell about single persons. Merge labels, or lower 'min_cell'."
        )


def _without_few(found: Comparison, min_cell: int) -> Comparison:
    """Leave out answers that few rows carry, and the largest weights."""

    def shown(answers: Mapping[str, Answer]) -> dict[str, Answer]:
        few = f"it has fewer than {min_cell} effective rows, which a summary does not tell"
        return {
            name: Answer(reason=few) if a.ess < min_cell else replace(a, largest_weight=float("nan"))
            for name, a in answers.items()
        }

    kept = {
        name: replace(
            e,
            answers=shown(e.answers),
            subgroups={k: replace(s, answers=shown(s.answers)) for k, s in e.subgroups.items()},
        )
        for name, e in found.evaluations.items()
    }
    return Comparison(kept, found.confidence)


def assumption_to_json(missingness: MCAR | MAR | MNAR) -> dict[str, Any]:
    """Return an assumption as plain texts."""
    found = {field.name: getattr(missingness, field.name) for field in fields(missingness)}
    return {"kind": type(missingness).__name__} | {k: str(v) if isinstance(v, MGraph) else v for k, v in found.items()}


def assumption_from_json(told: Mapping[str, Any]) -> MCAR | MAR | MNAR:
    """Return the assumption that these texts describe."""
    kinds: dict[str, Any] = {"MCAR": MCAR, "MAR": MAR, "MNAR": MNAR}
    found: MCAR | MAR | MNAR = kinds[told["kind"]](**{k: v for k, v in told.items() if k != "kind"})
    return found


def _evaluation(e: Evaluation, data: Retrospective, collected: BlockColumns) -> dict[str, Any]:
    assert e.tariff is not None
    return {
        "rules": "" if e.origin is None else e.origin.rules,
        "notes": list(e.assumption),
        "fixed": e.tariff.fixed,
        "paired": e.tariff.paired,
        "outcomes": [[name, *e.tariff.own.limits(name)] for name in e.tariff.own.names],
        "choices": [[c.method.name, c.propensity, c.name, c.key] for c in e.choices],
        "forms": lines_of(e.propensity),
        "paths": [lines_of(e.paths.sets), lines_of(e.paths.steps)],
        "answers": _answers(e, collected),
        "support": support_to_json(e.support),
        "levels": {
            level: {
                "share": share,
                "name": part.policy,
                "answers": _answers(part, collected),
                "support": support_to_json(part.support),
            }
            for level, part in e.subgroups.items()
            if (share := _share_of(e, level, data)) > 0
        },
    }


def _share_of(e: Evaluation, level: str, data: Retrospective) -> float:
    """Share of the cases in a subgroup."""
    run = None if e.origin is None else e.origin.run
    assert run is not None
    assert run.plan.levels is not None
    mine = run.plan.levels.codes == run.plan.levels.names.index(level)
    weight = run.plan.data.row_weight
    return float(weight[mine].sum() / weight.sum())


def _answers(e: Evaluation, collected: BlockColumns) -> dict[str, Any]:
    return {name: _answer(answer, collected) for name, answer in e.answers.items()}


def _answer(answer: Answer, collected: BlockColumns) -> dict[str, Any]:
    parts = answer.parts
    return {
        **{name: getattr(answer, name) for name in _FIGURES},
        "costs": None if answer.costs is None else _costs(answer.costs, collected),
        "parts": None if parts is None else _parts(parts, collected),
    }


def _costs(costs: Costs, collected: BlockColumns) -> dict[str, Any]:
    return {**collected.add(costs.amounts), "unsupported": costs.unsupported}


def _parts(parts: PartAmounts, collected: BlockColumns) -> dict[str, Any]:
    columns = parts.columns
    shape = {name: getattr(columns, name) for name in ("n_groups", "n_classes", "n_outcomes", "open", "paired")}
    place = collected.add(parts.amounts)
    return {**place, "unsupported": parts.unsupported, "columns": {"costly": columns.costly.tolist(), **shape}}


def support_to_json(support: Support) -> dict[str, Any]:
    """Return tables, sentences and figures of support."""
    tables = {name: lines_of(getattr(support, name)) for name in SUPPORT_TABLES}
    texts = {name: list(getattr(support, name)) for name in ("warnings", "heavy", "advice")}
    figures = {name: getattr(support, name) for name in ("unsupported", "n_rows", "sampled", "unsearched")}
    return {**tables, **texts, **figures}


def described_to_json(found: RowCounts, min_cell: int) -> dict[str, Any]:
    """Return the numbers of rows, without patterns and levels that few rows have."""
    problem, kept = found.problem, found.pattern_counts >= min_cell
    cost = np.asarray(problem.misclassification_cost)
    # Few gaps, and few rows without gaps, count as min_cell.
    gaps = np.where(found.gaps > 0, np.maximum(found.gaps, min_cell), 0)
    gaps = np.where(gaps < len(found), np.minimum(gaps, len(found) - min_cell), gaps)
    n_complete = len(found) - found.without(range(problem.n_groups))
    told = n_complete == 0 or n_complete >= min_cell
    return {
        "n_rows": len(found),
        "cases": found.cases,
        "problem": {
            "groups": {name: list(columns) for name, columns in problem.groups.items()},
            "costs": dict(problem.costs),
            "label": problem.label,
            "misclassification_cost": float(cost) if cost.ndim == 0 else found.costs.tolist(),
        },
        "classes": list(found.classes),
        "label_counts": found.label_counts.tolist(),
        "label_cases": found.label_cases.tolist(),
        "patterns": found.patterns[kept].astype(int).tolist(),
        "pattern_counts": found.pattern_counts[kept].tolist(),
        "pattern_cases": found.pattern_cases[kept].tolist(),
        "gaps": gaps.tolist(),
        "recorded_share": np.where(gaps == found.gaps, found.recorded_share, 1 - gaps / len(found)).tolist(),
        "complete_share": found.complete_share if told else min_cell / len(found),
        "unlabelled": found.unlabelled,
        "effective_rows": found.effective_rows,
        "n_clusters": found.n_clusters,
        "partial": {group: max(count, min_cell) for group, count in found.partial.items()},
        "levels": {name: count for name, count in found.levels.items() if count >= min_cell},
        "weighs_labels": found.weighs_labels,
        "shares_known": found.shares_known,
    }


def lines_of(table: pd.DataFrame) -> dict[str, Any]:
    """Return a table as lists of its columns."""
    return {"columns": [str(c) for c in table.columns], "lines": table.to_numpy(dtype=object).tolist()}


def plain_json(value: Any) -> Any:
    """Convert numpy numbers, tuples and mappings to what JSON knows."""
    if isinstance(value, Mapping):
        return {str(k): plain_json(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain_json(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return plain_value(value)
