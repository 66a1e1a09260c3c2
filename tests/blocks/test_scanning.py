"""Scans: files are described, checked and dealt; what is wrong with them is an error that names the file."""

import os

import block_files
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import afape
from afape.blocks.dealing import block_name, deal
from afape.blocks.scratch import Scratch

PROBLEM = block_files.PROBLEM


@pytest.fixture(scope="module")
def table():
    return block_files.frame()


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    return block_files.written(table, tmp_path_factory.mktemp("records") / "parquet")


def dealt(scan, path, seed=0):
    """The rows of every block."""
    path.mkdir()
    scratch = Scratch(str(path))
    counts, types = deal(scan, seed, scratch)
    blocks = [types.typed(pq.read_table(path / block_name(k))).to_pandas() for k in range(len(counts))]
    assert [len(b) for b in blocks] == counts
    return blocks


def same(a, b):
    assert a.columns == b.columns
    assert a.classes.tolist() == b.classes.tolist()
    np.testing.assert_array_equal(a.values, b.values)
    np.testing.assert_array_equal(a.labels, b.labels)


def test_a_scan_says_what_is_there_without_reading_rows(folder):
    scan = afape.scan(folder, PROBLEM, block_rows=250)
    assert (scan.n_rows, scan.n_blocks, len(scan.files)) == (1200, 5, 3)
    assert "3 files, 1,200 rows, 5 blocks" in repr(scan)
    assert afape.scan(str(folder / "part[01].parquet"), PROBLEM).n_rows == 800
    assert afape.scan([folder / "part0.parquet", folder / "part2.parquet"], PROBLEM).n_rows == 800


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_rows_in_memory_equal_those_of_the_table(table, tmp_path, kind):
    scan = afape.scan(block_files.written(table, tmp_path / "files", kind=kind), PROBLEM, cluster="patient", weight="w")
    whole = afape.Retrospective(block_files.in_file_order(table), PROBLEM, cluster="patient", weight="w")
    found = scan.read()
    same(found, whole)
    np.testing.assert_array_equal(found.cluster, whole.cluster)
    np.testing.assert_array_equal(found.weight, whole.weight)


def test_every_row_is_dealt_once_and_clusters_stay_together(table, folder, tmp_path):
    blocks = dealt(afape.scan(folder, PROBLEM, cluster="patient", block_rows=250), tmp_path / "a")
    every = pd.concat(blocks)
    assert sorted(every["a"]) == sorted(table["a"])
    assert every.groupby("patient").size().eq(2).all()
    assert sum(b["patient"].nunique() for b in blocks) == table["patient"].nunique()
    sizes = np.array([len(b) for b in blocks])
    assert (abs(sizes - 240) < 5 * np.sqrt(2 * 240)).all()


def test_dealing_depends_on_seed_and_row_only(table, folder, tmp_path):
    def place(blocks):
        return {a: k for k, b in enumerate(blocks) for a in b["a"]}

    first = place(dealt(afape.scan(folder, PROBLEM, block_rows=250), tmp_path / "a"))
    listed = [folder / f"part{k}.parquet" for k in (2, 0, 1)]
    assert place(dealt(afape.scan(folder, PROBLEM, block_rows=250), tmp_path / "c", seed=1)) != first
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for file in listed:  # written again, in other row groups, and read from another folder
        pd.read_parquet(file).to_parquet(elsewhere / file.name, row_group_size=7)
    assert place(dealt(afape.scan(elsewhere, PROBLEM, block_rows=250), tmp_path / "d")) == first
    by_patient = place(dealt(afape.scan(folder, PROBLEM, cluster="patient", block_rows=250), tmp_path / "e"))
    pd.read_parquet(folder).sample(frac=1, random_state=0).to_parquet(tmp_path / "one.parquet")
    one = afape.scan(tmp_path / "one.parquet", PROBLEM, cluster="patient", block_rows=250)
    assert place(dealt(one, tmp_path / "f")) == by_patient


def test_splits_share_no_cluster_and_have_the_same_columns(table, tmp_path):
    rare = table.assign(kind=np.where(np.arange(1200) == 3, "violet", table["kind"]))
    scan = afape.scan(block_files.written(rare, tmp_path / "files"), PROBLEM, cluster="patient")
    first, second = scan.split([0.3, 0.7])
    a, b = first.read(), second.read()
    assert len(a) + len(b) == 1200
    assert abs(len(a) - 360) < 80
    assert a.columns == b.columns
    assert "kind=violet" in a.columns
    assert not set(a.values[:, 0]) & set(b.values[:, 0])
    assert abs(len(second.read(200)) - 200) < 80


def test_a_level_of_one_file_is_a_column_of_every_block(table, tmp_path):
    rare = table.assign(kind=np.where(np.arange(1200) == 3, "violet", table["kind"]))
    scan = afape.scan(block_files.written(rare, tmp_path / "files"), PROBLEM, block_rows=300)
    types = deal(scan, 0, Scratch(str(tmp_path)))[1]
    assert types.problem().categories["kind"] == ["blue", "green", "red", "violet"]


def test_text_in_csv_files_gets_the_types_of_all_files(tmp_path):
    first = pd.DataFrame({"a": ["1", "2"], "kind": ["007", "008"], "b": ["1.5", ""], "c": ["", ""], "y": ["0", "1"]})
    second = first.assign(kind=["x1", "x2"], b=["NA", "4"], a=["0.5", "1"])
    for k, frame in enumerate((first, second)):
        frame.to_csv(tmp_path / f"part{k}.csv", index=False)
    data = afape.scan(tmp_path, PROBLEM, blanks=["NA"]).read()
    assert data.columns[:2] == ("a", "kind=007")  # zeros at the start stay, because other files have texts
    assert data.classes.tolist() == [0, 1]
    np.testing.assert_array_equal(data.values[:, 5], [1.5, np.nan, np.nan, 4.0])


def test_a_labelled_cost_matrix_keeps_its_labels(table, tmp_path):
    cost = pd.DataFrame([[0.0, 9.0], [4.0, 0.0]], index=["yes", "no"], columns=["yes", "no"])
    named = table.assign(y=np.where(table["y"] == 1, "yes", "no"))
    problem = afape.Problem({g: [g] for g in "abc"}, {"b": 1.0}, "y", cost)
    data = afape.scan(block_files.written(named, tmp_path / "files"), problem).read()
    assert data.classes.tolist() == ["no", "yes"]
    assert data.costs.tolist() == [[0.0, 4.0], [9.0, 0.0]]


def changed(folder, name, change):
    frame = pd.read_parquet(folder / name)
    change(frame).to_parquet(folder / name, index=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda f: f.drop(columns="b"), r"part1.parquet' has no column 'b'.*Add the column"),
        (
            lambda f: f.assign(b="high"),
            r"'b' has type double in .*part0.parquet', but large_string in .*part1.parquet'",
        ),
    ],
)
def test_files_with_other_columns_are_named(table, tmp_path, change, message):
    folder = block_files.written(table, tmp_path / "files")
    changed(folder, "part1.parquet", change)
    with pytest.raises(ValueError, match=message):
        afape.scan(folder, PROBLEM)


def test_damaged_and_empty_files_are_named(table, tmp_path):
    folder = block_files.written(table, tmp_path / "files")
    content = (folder / "part1.parquet").read_bytes()
    (folder / "part1.parquet").write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"part1\.parquet' is damaged, or no Parquet file"):
        afape.scan(folder, PROBLEM)
    (folder / "part1.parquet").write_bytes(b"")
    with pytest.raises(ValueError, match=r"part1\.parquet' is empty"):
        afape.scan(folder, PROBLEM)
    middle = bytearray(content)
    middle[100:3000] = b"\xff" * 2900  # a footer that is fine, and pages that are not
    (folder / "part1.parquet").write_bytes(bytes(middle))
    with pytest.raises(ValueError, match=r"part1\.parquet' is damaged in row group 0"):
        afape.scan(folder, PROBLEM).read()


def test_a_file_without_rows_counts_as_none_and_no_rows_at_all_is_an_error(table, tmp_path):
    folder = block_files.written(table, tmp_path / "files")
    changed(folder, "part1.parquet", lambda f: f.iloc[:0])
    assert len(afape.scan(folder, PROBLEM).read()) == 800
    for name in ("part0.parquet", "part2.parquet"):
        changed(folder, name, lambda f: f.iloc[:0])
    with pytest.raises(ValueError, match="3 files have no rows"):
        afape.scan(folder, PROBLEM)


def test_other_bad_input_is_refused(table, folder, tmp_path):
    for arguments, message in (
        ((tmp_path / "nothing", PROBLEM), "There is no file or folder"),
        ((str(folder / "*.csv"), PROBLEM), "has no files that end in"),
        ((folder, {"a": ["a"]}), "'problem' must be an afape.Problem"),
        (([], PROBLEM), "at least one file"),
        ((3, PROBLEM), "'files' must be the path"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            afape.scan(*arguments)
    for options, message in (
        ({"block_rows": 0}, "block_rows"),
        ({"keep": True}, "'keep' needs 'scratch'"),
        ({"cluster": "nobody"}, "has no column 'nobody'"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            afape.scan(folder, PROBLEM, **options)
    blank = block_files.written(table.assign(patient=table["patient"].where(table.index != 7)), tmp_path / "blank")
    with pytest.raises(ValueError, match=r"cluster column 'patient' is blank in 1 of .*part1\.parquet'"):
        afape.compare(
            afape.scan(blank, PROBLEM, cluster="patient", block_rows=300),
            block_files.POLICIES, block_files.Above(), missingness=block_files.MAR,
        )  # fmt: skip
    numbers = table.assign(kind=np.char.mod("%d", np.arange(1200)))
    with pytest.raises(ValueError, match="Column 'kind' is text, but 1200 of its 1200 entries are numbers"):
        afape.scan(block_files.written(numbers, tmp_path / "numbers"), PROBLEM).read()


def test_dictionaries_and_narrow_numbers_are_the_same_columns(table, tmp_path):
    folder = block_files.written(table, tmp_path / "files")
    narrow = pa.Table.from_pandas(table.iloc[1::3].assign(kind=table["kind"].astype("category")), preserve_index=False)
    narrow = narrow.set_column(0, "a", narrow["a"].cast(pa.float32()).cast(pa.float64()).cast(pa.float32()))
    pq.write_table(narrow, folder / "part1.parquet")
    data = afape.scan(folder, PROBLEM).read()
    assert data.columns == ("a", "kind=blue", "kind=green", "kind=red", "b", "c")
    np.testing.assert_allclose(data.values[400:800, 0], table["a"].iloc[1::3], rtol=1e-6)


def test_pyarrow_is_asked_for(folder, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(ModuleNotFoundError, match=r"afape\[scale\]"):
        afape.scan(folder, PROBLEM)


def test_scratch_folders_are_private_and_refuse_foreign_files(folder, tmp_path):
    def run(path, **options):
        scan = afape.scan(folder, PROBLEM, block_rows=600, scratch=path, keep=True, **options)
        return afape.check_support(scan, afape.AcquireAll(), missingness=block_files.MAR)

    run(tmp_path / "own")
    assert os.stat(tmp_path / "own").st_mode & 0o077 == 0
    with pytest.raises(ValueError, match="has a run with other cluster"):
        run(tmp_path / "own", cluster="patient")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("mine")
    with pytest.raises(ValueError, match="has other files"):
        run(tmp_path / "other")
    assert (tmp_path / "other" / "letter.txt").read_text() == "mine"
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    with pytest.raises(ValueError, match="only you can write to"):
        run(tmp_path / "shared")
