"""Heloc, Income and SUPPORT: where they come from, how they are recognised, what becomes of their codes."""

import importlib.util
import os
from importlib.metadata import PackageNotFoundError, distribution
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from afape.datasets import public
from afape.datasets.heloc import HELOC, load_heloc
from afape.datasets.income import INCOME, load_income
from afape.datasets.public import DataNotFoundError, WrongTableError
from afape.datasets.support import SUPPORT, load_support


def has_tables():
    try:
        distribution("teacher-xai")
    except PackageNotFoundError:
        return bool(os.environ.get("AFAPE_DATA"))
    return True


needs_tables = pytest.mark.skipif(not has_tables(), reason="no real tables: set AFAPE_DATA or install teacher-xai")


@pytest.fixture(scope="module")
def raw():
    if not has_tables():
        pytest.skip("no real tables: set AFAPE_DATA or install teacher-xai")
    return {"heloc": public.read_public(HELOC, None), "income": public.read_public(INCOME, None)}


@needs_tables
def test_heloc_has_its_rows_and_no_gaps():
    table = load_heloc()
    assert table.shape == (9871, 24)
    assert not table.isna().any().any()
    assert table["RiskPerformance"].value_counts().to_dict() == {"Bad": 5136, "Good": 4735}
    assert load_heloc(empty_rows="keep").shape == (10_459, 24)


@needs_tables
@pytest.mark.parametrize(("codes", "blank"), [("missing", 6114 + 10), ("all-missing", 6519 + 6114 + 10)])
def test_heloc_codes_become_blanks(codes, blank):
    assert int(load_heloc(codes=codes).isna().sum().sum()) == blank


@needs_tables
def test_income_question_marks():
    level, missing, drop = (load_income(unknown=u) for u in ("level", "missing", "drop"))
    assert level.shape == missing.shape == (32_561, 15)
    assert not level.isna().any().any()
    assert (level["workclass"] == "not stated").sum() == 1836
    assert missing.isna().sum()[lambda s: s > 0].to_dict() == {
        "workclass": 1836,
        "occupation": 1843,
        "native-country": 583,
    }
    assert drop.shape == (30_162, 15)
    assert not (drop == "?").any().any()


@pytest.fixture
def nothing_installed(monkeypatch):
    """No folder is named and teacher-xai is not installed."""

    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.delenv("AFAPE_DATA", raising=False)
    monkeypatch.setattr(public, "distribution", absent)


def test_a_file_and_a_folder_are_read(raw, tmp_path, nothing_installed, monkeypatch):
    raw["heloc"].to_csv(tmp_path / "heloc.csv", index=False)
    from_file, from_folder = load_heloc(tmp_path / "heloc.csv"), load_heloc(str(tmp_path))
    monkeypatch.setenv("AFAPE_DATA", str(tmp_path))
    assert load_heloc().equals(from_file)
    assert from_folder.equals(from_file)


def test_a_folder_without_the_table_falls_back_only_where_nobody_named_it(raw, tmp_path, monkeypatch):
    with pytest.raises(DataNotFoundError, match=r"has none of \['heloc.csv'.*three ways"):
        load_heloc(tmp_path)
    with pytest.raises(DataNotFoundError, match=r"nowhere does not exist.*three ways"):
        load_heloc(tmp_path / "nowhere")
    monkeypatch.setenv("AFAPE_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataNotFoundError, match="AFAPE_DATA must name a folder"):
        load_income()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda t: t.iloc[:5000], r"10,459 rows: it has 5,000.*incomplete"),
        (lambda t: pd.concat([t, t.iloc[:1]]), r"10,459 rows: it has 10,460\.$"),
        (lambda t: t.drop(columns="MaxDelqEver"), "no column 'MaxDelqEver'"),
        (lambda t: t.assign(RiskPerformance=t["RiskPerformance"].iloc[::-1].str.upper()), "must hold"),
        (lambda t: t.assign(ExternalRiskEstimate=t["ExternalRiskEstimate"] + 1), r"must sum to 705,206"),
        (lambda t: t.assign(ExternalRiskEstimate="high"), r"must sum to 705,206"),
    ],
    ids=["cut", "longer", "column", "labels", "values", "texts"],
)
def test_another_table_is_refused(raw, tmp_path, change, match):
    change(raw["heloc"]).to_csv(tmp_path / "heloc.csv", index=False)
    with pytest.raises(WrongTableError, match=match):
        load_heloc(tmp_path / "heloc.csv")


@pytest.mark.parametrize("content", [b"", b"\x89PNG\r\n\x1a\n\xff\xfe\x00\x01", b"a,b\n1,2,3\n4,5,6,7\n"])
def test_what_is_no_csv_is_refused(tmp_path, content):
    (tmp_path / "income.csv").write_bytes(content)
    with pytest.raises(WrongTableError, match=r"income\.csv"):
        load_income(tmp_path)


def test_without_data_and_network_three_ways_are_named(nothing_installed, monkeypatch):
    def offline(**arguments):
        raise OSError("no route to host")

    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    with pytest.raises(
        DataNotFoundError, match=r"no route to host.*--data.*AFAPE_DATA.*afape\[paper\].*OpenML"
    ) as caught:
        load_income()
    assert caught.value.__cause__ is not None


def test_openml_brings_the_test_part_along(raw, tmp_path, nothing_installed, monkeypatch):
    """OpenML has 48,842 rows, of which the training file comes first, and calls blanks categories."""
    raw["income"].to_csv(tmp_path / "income.csv", index=False)
    income = raw["income"].rename(columns={"income": "class"})
    income["workclass"] = income["workclass"].where(income["workclass"] != "?").astype("category")
    found = SimpleNamespace(frame=pd.concat([income, income.iloc[:16_281]]))
    monkeypatch.setattr("sklearn.datasets.fetch_openml", lambda **arguments: found)
    assert load_income().equals(load_income(tmp_path))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: load_heloc(codes="drop"), "'codes' must be one of"),
        (lambda: load_heloc(empty_rows=True), "'empty_rows' must be one of"),
        (lambda: load_income(unknown="?"), "'unknown' must be one of"),
    ],
)
def test_options_are_checked_first(call, match):
    with pytest.raises(ValueError, match=match):
        call()


def test_a_path_must_be_a_path():
    with pytest.raises(TypeError, match="'path' must be a file"):
        load_heloc(3)


@needs_tables
def test_numbers_are_numbers():
    assert load_heloc().drop(columns="RiskPerformance").dtypes.eq(np.float64).all()
    assert load_income()["age"].dtype == np.float64


@pytest.fixture(scope="module")
def support():
    if importlib.util.find_spec("SurvSet") is None and not os.environ.get("AFAPE_DATA"):
        pytest.skip("no SUPPORT table: set AFAPE_DATA or install SurvSet")
    return load_support()


def test_support_has_its_rows_and_its_gaps(support):
    assert support.shape == (9105, 21)
    assert support["died_180"].value_counts().to_dict() == {0: 4840, 1: 4265}
    recorded = support.notna()
    assert int((recorded["albumin"] & recorded["bilirubin"]).sum()) == 5182
    assert int(recorded[["glucose", "bun", "urine"]].all(axis=1).sum()) == 4051
    assert set(support["sex"]) == {"female", "male"}
    assert support["disease"].nunique() == 8


def test_the_file_and_the_package_give_one_table(support, tmp_path, monkeypatch):
    """Also `AFAPE_DATA` names a folder with the file, and SurvSet is used where there is none."""
    support.to_csv(tmp_path / "support2.csv", index=False)
    assert load_support(tmp_path).equals(support)
    if importlib.util.find_spec("SurvSet") is not None:
        monkeypatch.delenv("AFAPE_DATA", raising=False)
        assert load_support().equals(support)


def test_a_changed_support_table_is_refused(support, tmp_path):
    filled = support.assign(albumin=support["albumin"].fillna(0.0))  # the sum is right, the gaps are not
    filled.to_csv(tmp_path / "support2.csv", index=False)
    with pytest.raises(WrongTableError, match="'albumin' must sum to"):
        load_support(tmp_path)
    support.assign(urine=support["urine"] + 1).to_csv(tmp_path / "support2.csv", index=False)
    with pytest.raises(WrongTableError, match="'urine' must sum to"):
        load_support(tmp_path)


def test_without_support_two_ways_are_named(monkeypatch):
    monkeypatch.delenv("AFAPE_DATA", raising=False)
    monkeypatch.setattr("afape.datasets.support.find_spec", lambda name: None)
    with pytest.raises(DataNotFoundError, match=r"two ways.*support2\.csv.*AFAPE_DATA.*afape\[data\]"):
        load_support()
    assert SUPPORT.openml is None
