"""draft_problem(): draft a problem file from a table, with comments on what to edit."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from ..data.codes import missing_codes
from ..data.problem import label_text
from .errors import TableError, nearest

__all__ = ["draft_problem"]

_BLANKS = (
    "", "nan", "na", "n/a", "n.a.", "#n/a", "null", "none", "nil", "?", ".", "-", "--", "---", "unknown", "unk", "missing",
    "not done", "not measured", "not recorded", "not taken", "not tested", "not available", "not known",
)  # fmt: skip
_LABELS = r"(label|target|outcome|class|y|died|death|dead|mortality|diagnosis|default|income|risk.*|.*_label|is_.*)"
_WEIGHTS = r"(sampling|sample|survey|design|case|row|population)_?weights?|weights|pweight"  # not body weight
_CLUSTERS = r"(.*(patient|subject|person|customer|client|mrn|hadm|stay|encounter).*|id|.*[_ .-](id|nr|no|number))"
_CAMEL_ID = r".*[a-z](ID|Id|Nr|No)"
_DATE = r"(\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.](\d{4}|\d{2}))([T ].*)?"
_MOST_LEVELS = 50
_FEW_ROWS = 30  # a level of fewer rows is rare
_DATES = 0.9  # share of dates in a column of dates
_MANY_CLASSES = 20  # a label with more values is probably a number
_ROWS_OF_IDS = 100  # in a table of more rows, a column of whole numbers that never repeat is an identifier
_FEW_GAPS = 0.95  # share of rows that record a group which recording may depend on if the other rows are dropped
_TOGETHER = 0.95  # columns form a group if this share of the rows that lack either lacks both
_FREE = "always_recorded"


@dataclass
class _Draft:
    """Facts found in the table."""

    label: str
    guessed: bool
    blanks: list[str]
    groups: dict[str, list[str]] = field(default_factory=dict)
    notes: dict[str, str] = field(default_factory=dict)  # by group
    left_out: dict[str, str] = field(default_factory=dict)  # columns, with the reason
    clusters: list[str] = field(default_factory=list)
    weights: list[str] = field(default_factory=list)
    codes: list[str] = field(default_factory=list)
    code_texts: dict[str, None] = field(default_factory=dict)  # different codes, in the order of the columns
    texts: list[str] = field(default_factory=list)  # text columns of numbers
    gaps: dict[str, Any] = field(default_factory=dict)  # by group with gaps, True where a row lacks it


def draft_problem(frame: pd.DataFrame, label: str | None = None, name: str = "data.csv") -> str:
    """Draft a problem file for a table.

    Columns that are missing in (almost) the same rows form a group. Columns without gaps form one free group; the draft
    assumes that recording depends on it. Columns that look like identifiers or dates are left out and listed. Prices and the
    cost of a wrong label are placeholders: the draft says so, and so does every report until the line ``draft`` is removed.

    Parameters
    ----------
    frame : DataFrame
        The table, in which texts that mean a blank are still text.
    label : str, optional
        Column to predict. Default: a guess from names and values.
    name : str
        Name of the data file, for the comments.

    Returns
    -------
    str
        Text of a TOML file, with comments on what to edit.
    """
    columns = [str(c) for c in frame.columns]
    frame = frame.set_axis(columns, axis=1)
    if label is not None and label not in columns:
        raise TableError(f"'label' must be a column of the table, but {label!r} is not. {nearest(label, columns)}")
    blanks = _blank_texts(frame)
    known = frame.replace(blanks, np.nan).infer_objects() if blanks else frame
    numbers = known.apply(_numbers_where_numbers)
    draft = _Draft(label or _guess_label(numbers), label is None, blanks)
    draft.texts = [
        c
        for c in columns
        if c != draft.label and _is_text(known[c]) and not _is_text(numbers[c]) and known[c].equals(frame[c])
    ]
    known = numbers
    _sort_columns(draft, known)
    return _written(draft, known, name)


def _blank_texts(frame: pd.DataFrame) -> list[str]:
    """Return the texts in the table that look like blanks."""
    found: set[str] = set()
    for column in frame.columns:
        if frame[column].dtype == object or isinstance(frame[column].dtype, pd.StringDtype | pd.CategoricalDtype):
            levels = frame[column].dropna().unique()
            found |= {v for v in levels if isinstance(v, str) and v.strip().lower() in _BLANKS}
    return sorted(found)


def _numbers_where_numbers(column: pd.Series[Any]) -> pd.Series[Any]:
    """Convert a text column to numbers if all its texts are numbers, with a decimal point or a decimal comma."""
    if pd.api.types.is_numeric_dtype(column) or pd.api.types.is_datetime64_any_dtype(column):
        return column
    texts = column.astype(str).str.strip()
    comma = bool(texts[column.notna()].str.fullmatch(r"[-+]?\d+(,\d+)?").all())
    numbers = pd.to_numeric(texts.str.replace(",", ".").where(column.notna()) if comma else column, errors="coerce")
    return numbers if bool((numbers.notna() == column.notna()).all()) else column


def _is_text(column: pd.Series[Any]) -> bool:
    return any(isinstance(value, str) for value in column.dropna())


def _guess_label(frame: pd.DataFrame) -> str:
    """Return a column with few values and without gaps: one with the name of a label, else the last one."""
    fit = [c for c in frame.columns if frame[c].notna().all() and 2 <= frame[c].nunique() <= 20]
    named = [c for c in fit if re.fullmatch(_LABELS, str(c).lower())]
    if not fit:
        raise TableError("No column looks like a label (2 to 20 values, no gaps). Name it with --label.")
    return str(named[0] if named else fit[-1])


def _sort_columns(draft: _Draft, frame: pd.DataFrame) -> None:
    """Put every column into a group, or leave it out with a reason."""
    gaps: dict[str, Any] = {}
    always: list[str] = []
    for name in (str(c) for c in frame.columns if c != draft.label):
        column = frame[name]
        if _looks_like_weights(name, column):
            draft.weights.append(name)
        reason = _unfit(name, column)
        if reason:
            draft.left_out[name] = reason
            if _named_as_id(name) and 1 < column.nunique() < len(column) and column.notna().all():
                draft.clusters.append(name)
            continue
        if pd.api.types.is_numeric_dtype(column) and (
            found := missing_codes(column.to_numpy(dtype=float, na_value=np.nan))
        ):
            draft.codes.append(f"{name}: {', '.join(f'{code:g} in {count} rows' for code, count in found.items())}")
            draft.code_texts |= dict.fromkeys(f"{code:g}" for code in found)
        missing = column.isna().to_numpy()
        if missing.any():
            gaps[name] = missing
        else:
            always.append(name)
    if always:
        draft.groups[_FREE if _FREE not in frame.columns else "free"] = always
    for members in _missing_together(gaps):
        group = _group_name(members, draft.groups)
        draft.groups[group] = members
        either, both = (f([gaps[m] for m in members], axis=0) for f in (np.any, np.all))
        draft.gaps[group], partial = either, int((either & ~both).sum())
        draft.notes[group] = _share_words(either) + (f"; only in part in {partial}" if partial else "")


def _share_words(lacking: Any) -> str:
    """Return how many rows have a group, which rounding must not turn into all of them."""
    share = 100 * (1 - lacking.mean())
    return f"recorded in {share:.1f} % of rows" if share < 99.5 else f"recorded in all rows but {int(lacking.sum())}"


def _named_as_id(name: str) -> bool:
    return bool(re.fullmatch(_CLUSTERS, name.lower()) or re.fullmatch(_CAMEL_ID, name))


def _looks_like_weights(name: str, column: pd.Series[Any]) -> bool:
    """True for positive numbers without gaps whose name is that of sampling weights."""
    fit = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    return bool(re.fullmatch(_WEIGHTS, name.lower())) and fit and bool((column > 0).all())


def _unfit(name: str, column: pd.Series[Any]) -> str:
    """Return the reason why a column is not a feature, or an empty text."""
    found = column.dropna()
    levels = int(found.nunique())
    if levels == 0:
        return "no value at all"
    if levels == 1 and column.notna().all():
        return "always the same value"
    if pd.api.types.is_datetime64_any_dtype(column):
        return "a date; use a number of days"
    if _is_date(found):
        return "dates as text; use a number of days, such as the days since admission"
    text = not pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if text and levels > _MOST_LEVELS:
        rare = int((found.value_counts() < _FEW_ROWS).sum())
        return (
            f"text with {levels} different values, {rare} of them in fewer than {_FEW_ROWS} rows. If they matter, make groups "
            'of them in the data (the rare ones as "other", or codes by their first letters), and add the column to a group'
        )
    if _named_as_id(name) and levels > max(20, len(found) // 20):
        return "looks like an identifier"
    whole = not text and pd.api.types.is_integer_dtype(column) and levels == len(column) and len(column) > 20
    if whole and bool((column.diff().dropna() == 1).all()):
        return "counts the rows"
    return (
        "a different whole number in every row, so it looks like an identifier"
        if whole and levels > _ROWS_OF_IDS
        else ""
    )


def _is_date(found: pd.Series[Any]) -> bool:
    """True for texts that are dates, but for one in ten."""
    texts = found[found.map(lambda v: isinstance(v, str))].astype(str).str.strip()
    return len(texts) > 0 and len(texts) == len(found) and float(texts.str.fullmatch(_DATE).mean()) >= _DATES


def _missing_together(gaps: dict[str, Any]) -> list[list[str]]:
    """Return groups of columns that are missing in almost the same rows."""
    out: list[list[str]] = []
    for name, missing in gaps.items():
        for members in out:
            first = gaps[members[0]]
            if (missing & first).sum() >= _TOGETHER * (missing | first).sum():
                members.append(name)
                break
        else:
            out.append([name])
    return out


def _common_start(texts: list[str]) -> str:
    """Return the longest common prefix of the texts."""
    first, last = min(texts), max(texts)
    same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:same]


def _group_name(members: Sequence[str], taken: dict[str, Any]) -> str:
    if len(members) == 1:
        name = members[0]
    else:
        start = _common_start(list(members)).rstrip(" _-.0123456789")
        end = _common_start([m[::-1] for m in members])[::-1].lstrip(" _-.0123456789")
        common = max(start, end, key=len)
        name = common if len(common) > 2 else f"{members[0]}_and_{len(members) - 1}_more"
    while name in taken:
        name += "_group"
    return name


def _label_gaps(column: pd.Series[Any]) -> list[str]:
    """Return the line about rows without a label."""
    count = int(column.isna().sum())
    if not count:
        return []
    return [
        f'missing_labels = "weigh"  # EDIT: {count:,} rows have no label; "drop" leaves them out, which is right if it is chance',
    ]


def _written(draft: _Draft, frame: pd.DataFrame, name: str) -> str:
    """Return the text of the file."""
    shares = frame[draft.label].value_counts(normalize=True)
    role = "EDIT if this is not the column to predict" if draft.guessed else "the column to predict"
    listed = ", ".join(f"{label_text(k)} {100 * v:.0f} %" for k, v in shares.head(6).items())
    lines = [
        f"# Problem file for {_comment(name)} ({len(frame):,} rows, {frame.shape[1]} columns), drafted by `afape init`.",
        "# Lines marked EDIT contain placeholders or guesses. After editing: afape check, afape evaluate.",
        "",
        "draft = true  # EDIT: remove this line when prices and costs are real; until then reports call them placeholders",
        "",
        f"label = {_quoted(draft.label)}  # {role}: {_comment(listed)}",
        *_label_gaps(frame[draft.label]),
        "misclassification_cost = 10.0  # EDIT: the cost of a wrong label, in the unit of the prices",
        *_cost_hint(list(shares.index)),
    ]
    if draft.blanks:
        lines += ["", f"blanks = {_listed(draft.blanks)}  # texts that mean: never recorded"]
    lines += [
        f"# cluster = {_quoted(c)}  # rows with the same value belong to one case and are not independent"
        for c in draft.clusters
    ]
    lines += [
        f"# weight = {_quoted(c)}  # if it is the number of cases that a row stands for: use it, and leave it out of the groups"
        for c in draft.weights
    ]
    lines += [
        "",
        "[groups]",
        "# A group has columns that are measured together at one price. Without a price it is free: known before any decision.",
    ]
    for group, members in draft.groups.items():
        free = group not in draft.notes
        price = "" if free else ", price = 1.0"
        note = (
            "every row has these; add a price or split the group if they are not free"
            if free
            else f"EDIT price; {draft.notes[group]}"
        )
        lines.append(f"{_key(group)} = {{ columns = {_listed(members)}{price} }}  # {note}")
    lines += ["", *_missingness_lines(draft, bool(frame[draft.label].isna().any()))]
    if draft.codes:
        lines += [
            "",
            "# EDIT: these numbers look like codes for a missing value. If they mean that nothing was recorded, write above",
            f"# [groups]: blanks = {_listed([*draft.blanks, *draft.code_texts])}",
            "# This holds for all columns. If they are values, name the columns in [blank_means].",
        ]
        lines += [f"#   {_comment(code)}" for code in draft.codes]
    if draft.texts:
        lines += ["", "# EDIT: these columns are text, but all their texts are numbers. Make them numbers in the data:"]
        lines += [f"#   {_comment(_quoted(column))}" for column in draft.texts]
    lines += [
        "",
        "# [blank_means]  # columns in which a blank has a meaning and counts as recorded",
        "# mechanical_ventilation = 0",
    ]
    if draft.left_out:
        lines += ["", "# Left out:"]
        lines += [f"#   {_comment(_quoted(column))}: {reason}" for column, reason in draft.left_out.items()]
    return "\n".join([*lines, ""])


def _cost_hint(classes: list[Any]) -> list[str]:
    if len(classes) > _MANY_CLASSES:
        return [
            f"# EDIT: the label has {len(classes)} values, and each is a class. If it is a number, form ranges first."
        ]
    if len(classes) != 2:
        return []
    (a, b), (first, second) = ([_comment(f(label_text(c))) for c in classes] for f in (str, _key))
    lines = [
        f"# If errors have different costs, use this line in place of the one above (10: true {a}, predicted {b}):",
        f"# misclassification_cost = {{ {first} = {{ {second} = 10.0 }}, {second} = {{ {first} = 50.0 }} }}",
    ]
    if all(re.fullmatch(r"-?\d+|True|False", label_text(c)) for c in classes):
        one, other = sorted((first, second))
        lines += [
            "# Names of the labels, which all tables and reports then use, and the costs above too:",
            f'# classes = {{ {one} = "no", {other} = "yes" }}',
        ]
    return lines


def _missingness_lines(draft: _Draft, label_gaps: bool) -> list[str]:
    free = [g for g in draft.groups if g not in draft.notes]
    lines = [
        "[missingness]",
        "# EDIT: why are values missing? `afape check` tests what can be tested; the rest must come from your knowledge.",
    ]
    if free:
        lines += [
            'assumption = "MAR"  # recording depends only on these groups, which every row has:',
            f"given = {_listed(free)}",
            *_nearly_always(draft, free),
        ]
    else:
        lines += ['assumption = "MCAR"  # recording depends on nothing (no column is recorded in every row)']
    lines += [
        *([] if label_gaps else ["# label = true  # recording may also depend on the label"]),
        '# assumption = "MNAR"  # recording depends on groups that have gaps: draw a graph',
        f'# graph = "age -> R_cbc; age, cbc -> R_lactate{f"; age -> R_{draft.label}" if label_gaps else ""}"',
    ]
    return lines


def _nearly_always(draft: _Draft, free: list[str]) -> list[str]:
    """Return what it costs to let recording depend on groups with few gaps as well."""
    nearly = [group for group, lacking in draft.gaps.items() if lacking.mean() <= 1 - _FEW_GAPS]
    if not nearly:
        return []
    lacking = np.any([draft.gaps[group] for group in nearly], axis=0)
    return [
        f"# Few rows lack {_comment(_listed(nearly)[1:-1])}. Recording may depend on these groups too, if the "
        f"{int(lacking.sum())} of {len(lacking):,} rows that lack one are dropped. "
        "Then these lines replace the one above:",
        f"# given = {_listed([*free, *nearly])}",
        "# drop_gaps = true",
    ]


def _comment(text: str) -> str:
    """Return the text on one line."""
    return re.sub(r"[\x00-\x1f\x7f]", " ", text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z0-9_-]+", text) else _quoted(text)


def _listed(texts: Sequence[str]) -> str:
    return f"[{', '.join(_quoted(t) for t in texts)}]"
