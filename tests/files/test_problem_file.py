"""Problem files: what they say, where they are wrong, and drafts that can be used as they are."""

import re
import string
import tomllib

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import afape
from afape.files.drafting import draft_problem
from afape.files.errors import ProblemFileError, TableError
from afape.files.problem_file import read_problem
from afape.files.tables import read_table
from afape.files.toml_positions import positions_in
from afape.files.toml_words import in_file_words
from afape.support.implications import label_findings
from afape.support.suggestion import Suggestion
from afape.support.wording import balance_words, heavy_words, normalizer_words

GOOD = """
label = "died"
misclassification_cost = 500
cluster = "patient"
blanks = ["?"]
missing_labels = "drop"

[groups]
age = { columns = ["age"] }
cbc = { columns = [
    "hgb",
    "wbc",
], price = 26.0 }
lactate = { columns = "lactate", price = 12 }

[missingness]
assumption = "MAR"
given = ["age"]

[blank_means]
lactate = 0
"""


def written(tmp_path, text):
    path = tmp_path / "problem.toml"
    path.write_text(text)
    return path


def frame(rows=40):
    rng = np.random.default_rng(0)
    out = pd.DataFrame(rng.normal(size=(rows, 4)), columns=["age", "hgb", "wbc", "lactate"])
    out.loc[::3, ["hgb", "wbc"]] = np.nan
    out["patient"] = np.arange(rows) // 2
    out["died"] = np.arange(rows) % 2
    return out


def test_a_file_says_what_the_objects_would(tmp_path):
    said = read_problem(written(tmp_path, GOOD))
    assert said.problem.groups == {"age": ("age",), "cbc": ("hgb", "wbc"), "lactate": ("lactate",)}
    assert said.problem.prices.tolist() == [0, 26, 12]
    assert said.problem.cost_matrix(2).tolist() == [[0, 500], [500, 0]]
    assert said.missingness == afape.MAR(given=["age"])
    assert (said.cluster, said.blanks, said.missing_labels, said.draft) == ("patient", ("?",), "drop", False)
    data = said.records(frame())
    assert data.recorded[:, 1].sum() == 26
    assert len(np.unique(data.cluster)) == 20


def test_a_table_of_costs_is_aligned_by_label(tmp_path):
    text = (
        GOOD.replace("misclassification_cost = 500\n", "")
        + "[misclassification_cost]\n1 = { 0 = 500 }\n0 = { 1 = 20 }\n"
    )
    data = read_problem(written(tmp_path, text)).records(frame())
    assert data.costs.tolist() == [[0, 20], [500, 0]]


def test_graphs_and_other_assumptions(tmp_path):
    for lines, expected in [
        ('assumption = "MCAR"', afape.MCAR()),
        ('assumption = "MAR"\ngiven = ["age"]\nlabel = true', afape.MAR(given=["age"], label=True)),
        ('assumption = "MNAR"\nadjust = ["age", "cbc"]', afape.MNAR(adjust=["age", "cbc"])),
        ('assumption = "MNAR"\ngraph = "age, cbc -> R_lactate"', afape.MNAR(graph="age, cbc -> R_lactate")),
    ]:
        text = GOOD.replace('assumption = "MAR"\ngiven = ["age"]', lines)
        assert read_problem(written(tmp_path, text)).missingness == expected


BAD = [
    ("unknown key", 'label = "died', 'labels = "died', "there is no key 'labels' here. Did you mean 'label'?", 2),
    ("typo in a group", "price = 26.0 }", "prize = 26.0 }", "no key 'prize' here. Did you mean 'price'?", 13),
    ("negative price", "price = 26.0", "price = -1", "must be a number, 0 or more, but is -1", 13),
    ("price as text", "price = 26.0", 'price = "26"', "must be a number", 13),
    ("column twice", '    "wbc",', '    "age",', "'age' is already in the group 'age'", 12),
    ("label as feature", '    "wbc",', '    "died",', "the label 'died' must not be in a group", 12),
    ("number as column", '    "wbc",', "    3,", "must be a list of texts, but 3 is not text", 12),
    ("unknown group", 'given = ["age"]', 'given = ["aeg"]', "'aeg' is not a group. Did you mean 'age'?", 18),
    ("unknown assumption", '"MAR"', '"MARS"', "must be one of 'MCAR', 'MAR', 'MNAR', but is 'MARS'", 17),
    ("key of another", 'given = ["age"]', 'graph = "age -> R_cbc"', "'graph' can be used with MNAR, not with MAR", 18),
    ("nothing given", 'given = ["age"]', "", "MAR needs 'given'", 17),
    ("no such column", "lactate = 0", "lactose = 0", "'lactose' is in no group. Did you mean 'lactate'?", 21),
    ("negative cost", "= 500", "= -5", "must be 0 or more, but is -5", 3),
    ("cost as text", "= 500", '= "much"', "must be a number, or a table", 3),
    ("flag", "given", "drop_gaps = 1\ngiven", "'drop_gaps' must be true or false", 18),
    ("label missing", 'missing_labels = "drop"', 'missing_labels = "skip"', 'must be "raise", "drop" or "weigh"', 6),
    ("no toml", 'cluster = "patient"', 'cluster = "patient', "this is not TOML", 4),
]


@pytest.mark.parametrize(("what", "old", "new", "message", "line"), BAD, ids=[b[0] for b in BAD])
def test_errors_name_the_line(tmp_path, what, old, new, message, line):
    assert old in GOOD
    with pytest.raises(ProblemFileError) as caught:
        read_problem(written(tmp_path, GOOD.replace(old, new)))
    assert message in str(caught.value)
    assert caught.value.line == line, str(caught.value)
    assert f"problem.toml, line {line}:" in str(caught.value)


def test_graph_errors_name_their_line(tmp_path):
    for graph, message in [("age => R_cbc", "must have the form"), ("sex -> R_cbc", "'sex', which is neither a group")]:
        text = GOOD.replace('assumption = "MAR"\ngiven = ["age"]', f'assumption = "MNAR"\ngraph = "{graph}"')
        with pytest.raises(ProblemFileError, match=message) as caught:
            read_problem(written(tmp_path, text))
        assert caught.value.line == 18


def test_costs_must_be_whole(tmp_path):
    text = GOOD.replace("misclassification_cost = 500\n", "") + "[misclassification_cost]\n1 = { 0 = 500 }\n"
    with pytest.raises(ProblemFileError, match="predicting '1' if '0' is true is missing"):
        read_problem(written(tmp_path, text))


def test_a_file_that_does_not_fit_the_data(tmp_path):
    said = read_problem(written(tmp_path, GOOD))
    with pytest.raises(ProblemFileError, match=r"line 11: the data have no column 'hgb'. Did you mean 'hgbb'"):
        said.records(frame().rename(columns={"hgb": "hgbb"}))
    with pytest.raises(ProblemFileError, match=r"line 4: .* no column 'patient'"):
        said.records(frame().drop(columns="patient"))
    with pytest.raises(ProblemFileError, match=r"does not fit the data: .*at least two classes"):
        said.records(frame().assign(died=1))
    gaps = frame()
    gaps.loc[0, "age"] = np.nan
    with pytest.raises(ProblemFileError, match=r"line 18: 'given' must name groups that every row has"):
        said.records(gaps)


def test_no_file_says_how_to_get_one(tmp_path):
    with pytest.raises(ProblemFileError, match="afape init"):
        read_problem(tmp_path / "none.toml")


# Positions: every key that tomllib finds has a line, and it is the right one.

KEYS = st.text(string.ascii_letters + string.digits + "_-", min_size=1, max_size=6)
ODD = st.text(st.characters(blacklist_categories=["Cs", "Cc"], blacklist_characters='"\\\x7f'), min_size=1, max_size=8)
SCALARS = st.one_of(
    st.integers(-99, 99).map(str), st.booleans().map(lambda b: str(b).lower()), ODD.map(lambda t: f'"{t}"')
)


@given(st.dictionaries(KEYS, st.dictionaries(st.one_of(KEYS, ODD), SCALARS, max_size=4), max_size=4), st.integers(0, 3))
def test_positions_are_those_of_the_keys(tables, gap):
    lines, expected = [], {}
    for table, pairs in tables.items():
        lines += [""] * gap + ["# [a] comment = 1", f"[{table}]"]
        expected[(table,)] = len(lines)
        for key, value in pairs.items():
            lines.append(f'"{key}" = [ {value},  # "x" ]')
            lines.append(f"  {value} ]")
            expected[table, key] = len(lines) - 1
            expected[table, key, 1] = len(lines)
    text = "\n".join(lines)
    tomllib.loads(text)
    found = positions_in(text)
    assert {path: found[path] for path in expected} == expected


def test_positions_in_strings_of_several_lines():
    text = 'a = \'\'\'\nb = 1\n\'\'\'\nc = """\n\\""" d = 2\n"""\n[[e]]\nf = {g = 1, h = [1,\n2]}\n[[e]]\n'
    found = positions_in(text)
    assert found[("a",)] == 1
    assert found[("c",)] == 4
    assert ("b",) not in found
    assert found["e", 0, "f", "h", 1] == 9
    assert found["e", 1] == 10


# Tables.


def test_tables_are_what_their_ending_says(tmp_path):
    table = frame()
    table.to_csv(tmp_path / "a.csv", index=False)
    table.to_parquet(tmp_path / "a.parquet")
    (tmp_path / "b.csv").write_bytes((tmp_path / "a.parquet").read_bytes())
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.csv").read_bytes())
    pd.testing.assert_frame_equal(read_table(tmp_path / "a.csv"), read_table(tmp_path / "a.parquet"))
    with pytest.raises(TableError, match=r"ends in '\.csv', but is a Parquet file"):
        read_table(tmp_path / "b.csv")
    with pytest.raises(TableError, match=r"ends in '\.parquet', but is not a Parquet file"):
        read_table(tmp_path / "b.parquet")
    for name, content, message in [
        ("c.csv", b"", "is empty"),
        ("d.csv", b"PK\x03\x04rest", "a zip or Excel file"),
        ("e.csv", b"a,a\n1,2\n", "'a' twice"),
        ("f.csv", b"a,b\n", "no rows"),
        ("g.csv", b"a,b\n1,2\n1,2,3,4\n", "cannot be read as a table"),
        ("h.csv", b"a,b\n\xff,2\n", "UTF-8"),
        ("i.xlsx", b"PK", "must end in"),
        ("j.csv", b"a\n1\n", "single column"),
    ]:
        (tmp_path / name).write_bytes(content)
        with pytest.raises(TableError, match=message):
            read_table(tmp_path / name)
    with pytest.raises(TableError, match="There is no file"):
        read_table(tmp_path / "nowhere.csv")


def test_blanks_are_said_not_guessed(tmp_path):
    (tmp_path / "a.csv").write_text("a,b\n1,x\n?,NA\n-9,y\n")
    plain = read_table(tmp_path / "a.csv")
    assert plain["a"].tolist() == ["1", "?", "-9"]
    assert plain["b"].tolist() == ["x", "NA", "y"]
    said = read_table(tmp_path / "a.csv", ["?", "NA", "-9"])
    assert said["a"].isna().tolist() == [False, True, True]
    assert said["b"].isna().tolist() == [False, True, False]
    (tmp_path / "a.csv").write_text("a;b\n1;x\n2;y\n")
    assert read_table(tmp_path / "a.csv").columns.tolist() == ["a", "b"]


# Drafts.


def test_a_draft_can_be_used_as_it_is(tmp_path):
    rng = np.random.default_rng(0)
    n = 300
    table = pd.DataFrame(rng.normal(size=(n, 5)), columns=["age", "cbc hgb", "cbc wbc", "lactate", '$we<ird>"\\'])
    table.loc[rng.random(n) < 0.3, ["cbc hgb", "cbc wbc"]] = np.nan
    table.loc[rng.random(n) < 0.5, "lactate"] = np.nan
    table["sex"] = np.where(rng.random(n) < 0.5, "f", "m")
    table["town"] = np.where(rng.random(n) < 0.2, "?", np.where(rng.random(n) < 0.5, "A", "B"))
    table["potassium"] = np.where(rng.random(n) < 0.3, "?", rng.normal(size=n).round(2).astype(str))
    table["patient_id"] = np.arange(n) // 3
    table["row"] = np.arange(n)
    table["note"] = [f"text {i}" for i in range(n)]
    table["died"] = rng.integers(0, 2, n)
    text = draft_problem(table)
    said = read_problem(written(tmp_path, text))
    assert said.draft
    assert said.blanks == ("?",)
    assert said.problem.label == "died"
    assert said.problem.groups == {
        "always_recorded": ("age", '$we<ird>"\\', "sex"),
        "cbc": ("cbc hgb", "cbc wbc"),
        "lactate": ("lactate",),
        "town": ("town",),
        "potassium": ("potassium",),
    }
    assert said.missingness == afape.MAR(given=["always_recorded"])
    assert '# cluster = "patient_id"' in text
    for name in ("patient_id", "row", "note"):
        assert f'#   "{name}": ' in text
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    data = said.records(read_table(path, said.blanks))
    known = table.replace("?", np.nan)[["age", "cbc hgb", "lactate", "town", "potassium"]].notna()
    assert (data.recorded == known.to_numpy()).all()


def test_a_draft_without_a_label_asks_for_one():
    with pytest.raises(TableError, match="--label"):
        draft_problem(pd.DataFrame({"a": np.arange(100.0), "b": np.arange(100.0)}))
    with pytest.raises(TableError, match="Did you mean 'died'"):
        draft_problem(frame(), label="dide")


def test_a_draft_says_where_the_label_looks_like_a_number(tmp_path):
    table = pd.DataFrame({"age": np.arange(90.0), "score": np.arange(90) % 30, "died": np.arange(90) % 2})
    assert "EDIT: the label has 30 values, and each is a class" in draft_problem(table, label="score")
    assert "each is a class" not in draft_problem(table, label="died")
    assert read_problem(written(tmp_path, draft_problem(table, label="score"))).problem.label == "score"


def test_draft_of_a_table_without_anything_always_recorded(tmp_path):
    table = frame()[["hgb", "lactate", "died"]]
    table.loc[1, "lactate"] = np.nan
    assert read_problem(written(tmp_path, draft_problem(table))).missingness == afape.MCAR()


NAMED = """
label = "died"
classes = { 0 = "survived", 1 = "dead" }
misclassification_cost = { survived = { dead = 1 }, dead = { survived = 5 } }
groups = { age = { columns = ["age"] } }
missingness = { assumption = "MCAR" }
"""


@pytest.mark.parametrize("kind", [int, float, str, "polars", "pyarrow"])
def test_labels_have_the_names_of_the_problem_file(tmp_path, kind):
    said = read_problem(written(tmp_path, NAMED))
    table = frame()[["age", "died"]]
    if isinstance(kind, type):
        table["died"] = table["died"].astype(kind)
    else:
        table = pytest.importorskip("polars").from_pandas(table)
        table = table.to_arrow() if kind == "pyarrow" else table
    data = said.records(table)
    assert data.classes.tolist() == ["survived", "dead"]
    assert data.labels.tolist() == [0, 1] * 20
    assert data.costs.tolist() == [[0, 1], [5, 0]]


def test_rows_without_a_label_have_no_name(tmp_path):
    table = frame()[["age", "died"]]
    table.loc[0, "died"] = np.nan
    with pytest.raises(ProblemFileError, match="blank in 1 of 40 rows"):
        read_problem(written(tmp_path, NAMED)).records(table)
    dropped = NAMED.replace("label =", 'missing_labels = "drop"\nlabel =')
    assert len(read_problem(written(tmp_path, dropped)).records(table)) == 39


@pytest.mark.parametrize(
    ("classes", "message"),
    [
        ('{ 0 = "survived", 2 = "dead" }', "'classes' must name every label, but lacks '1'"),
        ('{ 0 = "dead", 1 = "dead" }', "must give the labels different names"),
        ("{ 0 = 1, 1 = 2 }", "must be a text in quotes"),
    ],
)
def test_names_of_labels_that_do_not_fit(tmp_path, classes, message):
    text = NAMED.replace('{ 0 = "survived", 1 = "dead" }', classes).replace("survived = { dead = 1 }", "a = { b = 1 }")
    text = re.sub("misclassification_cost = .*", "misclassification_cost = 1", text)
    with pytest.raises(ProblemFileError, match=re.escape(message)) as caught:
        read_problem(written(tmp_path, text)).records(frame()[["age", "died"]])
    assert caught.value.line == 3


@pytest.mark.parametrize("labels", [["0", "1"], ["0.0", "1.0"], ["True", "False"], ["it's", 'a "b"'], ["x y", "ä"]])
def test_the_costs_in_comments_of_a_draft_are_valid_as_they_stand(tmp_path, labels):
    table = frame()[["age", "hgb"]].assign(died=[labels[k % 2] for k in range(40)])
    table.to_csv(tmp_path / "t.csv", index=False)
    table = read_table(tmp_path / "t.csv")
    text = draft_problem(table, label="died")
    (commented,) = (line for line in text.splitlines() if line.startswith("# misclassification_cost"))
    used = re.sub("(?m)^misclassification_cost = .*$", lambda _: commented.removeprefix("# "), text)
    data = read_problem(written(tmp_path, used)).records(table)
    assert sorted(np.ravel(data.costs)) == [0, 0, 10, 50]
    names = [line for line in text.splitlines() if line.startswith("# classes")]
    if labels[0] in ("0", "0.0", "True"):
        named = read_problem(written(tmp_path, text.replace(names[0], names[0].removeprefix("# ")))).records(table)
        assert sorted(named.classes) == ["no", "yes"]
    else:
        assert not names


def odd(rows=600):
    """Columns that must not become features as they are."""
    rng = np.random.default_rng(0)
    days = pd.date_range("2020-01-01", periods=rows)
    return pd.DataFrame(
        {
            "RecordID": rng.permutation(10**5)[:rows],
            "serial": rng.permutation(10**6)[:rows],
            "admitted": days.strftime("%d.%m.%Y"),
            "seen": days.strftime("%Y-%m-%d %H:%M"),
            "icd": [f"A{k}" for k in rng.integers(0, 300, rows)],
            "age": rng.normal(60, 10, rows).round(),
            "uric_acid": rng.normal(5, 1, rows).round(2),
            "systolic": np.where(rng.random(rows) < 0.2, -1, rng.normal(120, 10, rows).round()),
            "diastolic": np.where(rng.random(rows) < 0.2, 999, rng.normal(80, 10, rows).round()),
            "lactate": np.where(rng.random(rows) < 0.4, "not done", rng.normal(2, 1, rows).round(1).astype(str)),
            "crp": np.where(rng.random(rows) < 0.4, "?", rng.normal(2, 1, rows).round(1).astype(str)),
            "gcs": np.where(np.arange(rows) < 8, np.nan, rng.integers(3, 16, rows)),
            "died": rng.integers(0, 2, rows),
        }
    )


def test_a_draft_flags_what_is_no_feature(tmp_path):
    text = draft_problem(odd(), label="died")
    said = read_problem(written(tmp_path, text))
    assert said.problem.feature_columns == ("age", "uric_acid", "systolic", "diastolic", "lactate", "crp", "gcs")
    assert said.blanks == ("?", "not done")
    for column, reason in {
        "RecordID": "looks like an identifier",
        "serial": "a different whole number in every row",
        "admitted": "dates as text",
        "seen": "dates as text",
        "icd": "different values, 254 of them in fewer than 30 rows. If they matter, make groups of them",
    }.items():
        assert re.search(rf'#   "{column}": .*{reason}', text)
    assert '[groups]: blanks = ["?", "not done", "-1", "999"]' in text
    assert "#   systolic: -1 in" in text
    assert "recorded in all rows but 8" not in text  # 98.7 %
    assert "the 8 of 600 rows that lack one are dropped" in text
    used = re.sub("(?m)^given = .*$", "", text).replace("# given", "given").replace("# drop_gaps", "drop_gaps")
    assert read_problem(written(tmp_path, used)).missingness == afape.MAR(["always_recorded", "gcs"], drop_gaps=True)


def test_a_draft_does_not_round_a_group_to_always_recorded():
    table = frame(2000)[["age", "died"]].assign(gcs=1.0)
    table["gcs"] = np.arange(2000.0) % 12
    table.loc[3, "gcs"] = np.nan
    assert "recorded in all rows but 1" in draft_problem(table, label="died")


def texts_for_python():
    """Warnings with a way out in Python, made by the functions that word them."""
    line = {"column": "age", "set": "cbc", "before": 0.5, "after": 0.4, "p_value": 1e-9}
    yield balance_words(pd.DataFrame([line]), 0.1)
    yield normalizer_words("ipw-semi", 2.0, 0.1)
    yield normalizer_words("ipw-semi", 2.0, 5.0)
    yield heavy_words(50, 90, 3.0, 0.9, 77.0, pd.DataFrame({"row": [1], "set": ["cbc"], "share": [0.9]}))
    yield Suggestion("Why.", afape.MAR(["age", "sex"], label=True, drop_gaps=True)).python
    yield Suggestion("Why.", afape.MNAR(adjust=["age"])).python
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 900)
    table = pd.DataFrame(
        {"age": rng.normal(size=900), "b": np.where(rng.random(900) < 0.3 + 0.4 * label, 1.0 * label, np.nan)}
    )
    problem = afape.Problem({"age": ["age"], "b": ["b"]}, {"b": 1.0}, "died", 1.0)
    yield label_findings(afape.Retrospective(table.assign(died=label), problem), afape.MAR(["age"]), ["b"])
    table = frame()[["age", "died"]].assign(town=[f"t{k}" for k in range(40)])
    table = pd.concat([table, table.assign(town=[f"u{k}" for k in range(40)])], ignore_index=True)
    problem = afape.Problem({"age": ["age"], "town": ["town"]}, {}, "died", 1.0)
    with pytest.warns(afape.warnings.ManyLevelsWarning) as caught:
        afape.Retrospective(table, problem)
    yield str(caught[0].message)
    with pytest.warns(afape.warnings.LookalikeLevelsWarning) as caught:
        afape.Retrospective(table.assign(town=["a", "A"] * 40), problem)
    yield str(caught[0].message)


def test_ways_out_are_those_of_a_problem_file():
    found = [in_file_words(text) for text in texts_for_python()]
    assert len(found) == 9
    for text in found:
        assert not re.search(r"afape\.|result\.|support\.|frame\[|of the Problem", text), text
    assert 'assumption = "MAR", given = ["age", "sex"], label = true, drop_gaps = true.' in found[4]
    assert 'assumption = "MNAR", adjust = ["age"].' in found[5]
    assert in_file_words("Nothing to change.") == "Nothing to change."


def test_weights_of_rows(tmp_path):
    path = tmp_path / "problem.toml"
    table = pd.DataFrame({"age": [50.0, 60.0, 70.0], "y": ["no", "yes", "no"], "sampling_weight": [1.5, 3.0, 4.5]})
    text = """
label = "y"
misclassification_cost = 5.0
weight = "sampling_weight"
[groups]
age = { columns = ["age"] }
[missingness]
assumption = "MCAR"
"""
    path.write_text(text)
    assert afape.read_problem(path).records(table).weight.tolist() == [1, 2, 3]
    path.write_text(text.replace('"sampling_weight"', '"weight"'))
    with pytest.raises(ProblemFileError, match=r"line 4.*no column 'weight'.*sampling_weight"):
        afape.read_problem(path).records(table)
    drafted = draft_problem(table, "y", "records.csv")
    assert '# weight = "sampling_weight"' in drafted


def test_labels_with_gaps(tmp_path):
    table = pd.DataFrame({"age": [50.0, 60.0, 70.0, 80.0], "y": ["no", "yes", None, "no"]})
    text = draft_problem(table, "y", "records.csv")
    assert 'missing_labels = "weigh"  # EDIT: 1 rows have no label' in text
    (tmp_path / "problem.toml").write_text(text)
    data = afape.read_problem(tmp_path / "problem.toml").records(table)
    assert data.labels.tolist() == [0, 1, -1, 0]
    assert data.labelled.tolist() == [True, True, False, True]
