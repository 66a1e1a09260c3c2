"""in_file_words(): errors and warnings in the words of a problem file, for users who write no Python."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

__all__ = ["in_file_words"]

_Match = re.Match[str]


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def in_file_words(message: str) -> str:
    """Return a message in which the way out is one for a problem file, a command or the data file, in place of Python."""
    for pattern, words in _CHANGES:
        message = re.sub(pattern, words, message, flags=re.DOTALL)
    return message


def _numbers(found: _Match) -> str:
    texts = re.findall(r"'(.*?)' \(\d+\)", found["texts"])
    return (
        f"{found['head']}{found['texts']}. If these texts mean that nothing was recorded, list them in the problem "
        f"file: blanks = {json.dumps(texts, ensure_ascii=False)}. If the column is a category, write there [categories] and "
        f"{_quoted(found['column'])} = true."
    )


def _units(found: _Match) -> str:
    return (
        f"{found['head']}{found['texts']}. Leave only the numbers in the data file. If the column is a category, write in the "
        f"problem file [categories] and {_quoted(found['column'])} = true."
    )


def _codes(found: _Match) -> str:
    return (
        f'list them in the problem file: blanks = ["{found["code"]}"]. If they are values with a meaning, name the columns '
        f"there: [blank_means] and {_quoted(found['column'])} = {found['code']}."
    )


def _assumption(found: _Match) -> str:
    given = json.dumps(re.findall(r"'(.*?)'", found["given"]), ensure_ascii=False)
    more = "".join(f", {option} = true" for option in ("label", "drop_gaps") if f"{option}=True" in found["more"])
    return f'Write in the problem file, under [missingness]: assumption = "{found["kind"]}", {found["key"]} = {given}{more}.'


_TEXTS = (
    r"(?P<head>Column '(?P<column>[^']*)' is text, but [^;]*{kind})(?P<texts>; the texts are .*?)\. Each text would become a "
    r"level\..*?: None\}}\."
)
_CHANGES: tuple[tuple[str, str | Callable[[_Match], str]], ...] = (
    (_TEXTS.format(kind="are numbers"), _numbers),
    (_TEXTS.format(kind="are numbers with a sign or a unit"), _units),
    (
        r"make them NaN: frame\['(?P<column>[^']*)'\] = frame\['[^']*'\]\.replace\((?P<code>\S+), numpy\.nan\)\. If they are "
        r"values.*?blank_means=\{.*?\}\.",
        _codes,
    ),
    (
        r"Use afape\.(?P<kind>MAR|MNAR)\((?P<key>given|adjust)=\[(?P<given>.*?)\](?P<more>[^)]*)\), and check again\.",
        _assumption,
    ),
    (
        r"Use the labels of the label column for rows and columns, or pass an array in the order of the classes\.",
        "Use the labels of the label column, or the names that 'classes' gives them.",
    ),
    (r"missing_labels='(weigh|drop)'", r'missing_labels = "\1"'),
    (
        r"Add them to the assumption \(afape\.MAR\(given=\.\.\., label=\.\.\.\)\), or use another model \('propensity'\)\.",
        "Add their groups to 'given' in the problem file.",
    ),
    (r"afape\.check_missingness tests", "`afape check` tests"),
    (r" such as afape\.ImputedClassifier\(decide='cost'\)", " which --decide cost trains"),
    (r"\(see support\.heaviest\)", "(the report has more)"),
    (r" (See|Check) result\.support(\.balance)?( for large weights)?\.", " The report has more."),
    (
        r" Unify them: .*?\.str\.lower\(\)\.|unify them: frame.*?\.str\.lower\(\)\.",
        "write them in one way in the data file.",
    ),
    (r"Group rare levels: counts = .*?, 'other'\)\.", 'Write rare levels as "other" in the data file.'),
    (r"list all classes in 'classes' of the Problem", "list all classes in 'classes' of the problem file"),
    (r"(list (them|it) in '(categories|classes)'|'blank_means') of the Problem", r"\1 of the problem file"),
)
