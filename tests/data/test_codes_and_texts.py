"""Numbers stored as text are refused, codes for missing values and very many levels are asked about."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest

import afape
from afape.data.codes import missing_codes
from afape.warnings import AfapeWarning, CodeValuesWarning, LookalikeLevelsWarning, ManyLevelsWarning

N = 1000
RNG = np.random.default_rng(0)


def frame(**columns):
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"a": rng.normal(size=N), "b": rng.normal(size=N), "y": rng.integers(0, 2, N)})
    return table.assign(**columns)


def records(table, **options):
    problem = afape.Problem({"a": ["a"], "b": ["b"]}, {"b": 1.0}, "y", 5.0, **options)
    return afape.Retrospective(table, problem)


def texts(pattern):
    return [pattern.format(v) for v in np.random.default_rng(2).normal(5, 2, N)]


@pytest.mark.parametrize(
    ("column", "match"),
    [
        (texts("{:.3f}"), r"1000 of its 1000 entries are numbers\..*pandas\.to_numeric"),
        ([t.replace(".", ",") for t in texts("{:.3f}")], r"some with a decimal comma.*decimal=','"),
        ([t.replace(".", ",") for t in texts("{:.0f}")[:900] + texts("{:.2f}")[:100]], r"entries are numbers"),
        (texts("{:.2f} mg"), r"with a sign or a unit.*str\.extract"),
        (["<0.1"] * 400 + texts("{:.2f}")[:300] + texts("> {:.2f}")[:300], r"with a sign or a unit"),
        (["NA"] * 700 + texts("{:.2f}")[:300], r"300 of its 1000 entries are numbers; the texts are 'NA' \(700\)"),
        (["0", "1"] * 500, r"pass categories=\{'b': None\}"),
    ],
)
def test_numbers_stored_as_text_are_refused_with_the_conversion(column, match):
    table = frame(b=column)
    with pytest.raises(ValueError, match=match):
        records(table)
    with pytest.raises(ValueError, match=match):
        records(table.convert_dtypes())


def test_a_table_read_as_text_is_refused(tmp_path):
    table = frame().astype(str)
    with pytest.raises(ValueError, match="'a' is text"):
        records(table)
    file = tmp_path / "all.parquet"
    pytest.importorskip("pyarrow")
    table.to_parquet(file)
    with pytest.raises(ValueError, match="'a' is text"):
        records(pd.read_parquet(file))


@pytest.mark.parametrize(
    "column",
    [
        ["5 mg", "10 mg"] * 500,
        ["<=50K", ">50K"] * 500,
        ["18-25", "26-40", "41-65", "65+"] * 250,
        ["02139", "10001"] * 500,
        ["A1", "B2"] * 500,
    ],
)
def test_categories_with_digits_are_levels(column):
    assert len(records(frame(b=column)).columns) == 1 + len(set(column))


def test_a_category_of_digits_can_be_declared():
    assert records(frame(b=["0", "1"] * 500), categories={"b": None}).columns == ("a", "b=0", "b=1")


def counts(mean, code, share):
    values = RNG.poisson(mean, N).astype(float)
    values[RNG.random(N) < share] = code
    return values


def ages(code, share):
    values = RNG.normal(50, 15, N).round().clip(1, 98)
    values[RNG.random(N) < share] = code
    return values


@pytest.mark.parametrize(
    ("values", "code"),
    [
        (ages(-999, 0.02), -999),
        (ages(999, 0.3), 999),
        (ages(99, 0.2), 99),
        (ages(-1, 0.1), -1),
        (counts(3, -9, 0.05), -9),
        (counts(30, -1, 0.1), -1),
        (RNG.normal(size=N) * (RNG.random(N) > 0.2) - 999.0 * 0, None),
        (np.where(RNG.random(N) < 0.1, -999, RNG.normal(size=N)), -999),
        (np.where(RNG.random(N) < 0.1, 9999, RNG.normal(1000, 500, N)), 9999),
    ],
)
def test_codes_are_found(values, code):
    assert list(missing_codes(values)) == ([] if code is None else [code])


@pytest.mark.parametrize(
    "values",
    [
        RNG.normal(size=N),
        RNG.integers(-1, 2, N),
        RNG.integers(-3, 4, N),
        RNG.integers(0, 100, N),
        RNG.integers(-99, 100, N),
        RNG.poisson(3, N) - 1,
        RNG.poisson(3, N) - RNG.poisson(1, N),
        np.minimum(RNG.exponential(20, N), 99).round(),
        RNG.integers(-125, -66, N),
        RNG.integers(0, 1000, N),
        np.full(N, np.nan),
        np.array([]),
        np.full(N, 99),
    ],
)
def test_ordinary_numbers_are_not_taken_for_codes(values):
    assert missing_codes(np.asarray(values, dtype=float)) == {}


def test_codes_are_asked_about_unless_they_are_declared_or_blank():
    table = frame(b=ages(-999, 0.1))
    with pytest.warns(
        CodeValuesWarning, match=r"'b': -999 in \d+ of 1000 rows.*replace\(-999, numpy\.nan\).*blank_means"
    ):
        kept = records(table)
    assert kept.recorded.all()
    with warnings.catch_warnings():
        warnings.simplefilter("error", AfapeWarning)
        declared = records(table, blank_means={"b": -999})
        blank = records(table.replace(-999, np.nan))
    np.testing.assert_array_equal(declared.values, kept.values)
    assert not blank.recorded.all()


def test_very_many_levels_are_asked_about():
    codes = [f"C{k}" for k in RNG.integers(0, 300, N)]
    with pytest.warns(ManyLevelsWarning, match=r"'b' has \d+ levels.*'other'"):
        records(frame(b=codes))
    with pytest.warns(ManyLevelsWarning):
        records(frame(b=pd.Categorical(codes)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", AfapeWarning)
        records(frame(b=codes), categories={"b": sorted(set(codes))})


COMMAS = frame(b=ages(-999, 0.1), c=texts("{:.3f}"))


def written(tmp_path, table, **options):
    file = tmp_path / "table.csv"
    table.to_csv(file, index=False, **{"sep": ";", "decimal": ",", **options})
    return file


def test_a_file_with_decimal_commas_is_read_as_numbers(tmp_path):
    from afape.files.tables import read_table

    table = COMMAS.rename(columns={"a": "a, in years"}).assign(c=[t.replace(".", ",") for t in COMMAS["c"]])
    table.loc[::9, "c"] = "NA"
    found = read_table(written(tmp_path, table), ["NA"])
    assert [found[c].dtype.kind for c in found.columns] == ["f", "f", "i", "f"]
    np.testing.assert_allclose(found["a, in years"], COMMAS["a"])
    plain = read_table(written(tmp_path, COMMAS.drop(columns="c"), sep=",", decimal="."))
    pd.testing.assert_frame_equal(plain, COMMAS.drop(columns="c"), check_dtype=False)


def test_a_file_with_both_decimal_signs_is_refused(tmp_path):
    from afape.files import TableError
    from afape.files.tables import read_table

    with pytest.raises(TableError, match="decimal comma in 'a', but numbers with a point in 'c'"):
        read_table(written(tmp_path, COMMAS))


def test_a_draft_reads_decimal_commas_and_names_codes_and_texts(tmp_path):
    from typer.testing import CliRunner

    from afape.commands.main import app

    table = COMMAS.assign(c=[t.replace(".", ",") for t in COMMAS["c"]])
    table.loc[::9, "c"] = "NA"
    file, out = written(tmp_path, table), tmp_path / "draft.toml"
    result = CliRunner().invoke(app, ["init", str(file), "--label", "y", "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    text = out.read_text()
    assert 'blanks = ["NA"]' in text
    assert 'c = { columns = ["c"], price = 1.0 }' in text
    assert 'blanks = ["NA", "-999"]' in text
    assert "#   b: -999 in" in text
    assert json.loads(result.output)


def test_a_draft_names_columns_of_a_table_that_are_text_although_they_are_numbers():
    from afape.files.drafting import draft_problem

    text = draft_problem(frame(b=texts("{:.2f}"), c=["x", "z"] * 500), "y")
    assert 'all their texts are numbers. Make them numbers in the data:\n#   "b"\n' in text


def test_levels_and_labels_in_several_spellings_are_asked_about():
    with pytest.warns(LookalikeLevelsWarning, match=r"'b' .*\['Male', 'male'\]"):
        records(frame(b=["Male", "male", "female", "female"] * 250))
    with pytest.warns(LookalikeLevelsWarning, match=r"'y' .*\['no', 'no '\]"):
        records(frame(y=["no", "no ", "yes", "yes"] * 250))
