"""Evaluations of scans: one block is the evaluation in memory; several blocks agree with it; a run can be continued."""

import multiprocessing
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import block_files
import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose

import afape
from afape.blocks.engine import run_blocks
from afape.blocks.scratch import Scratch
from afape.warnings import BlockWarning, ResumedWarning

SETTINGS = {"missingness": block_files.MAR, "estimators": block_files.ESTIMATORS}


@pytest.fixture(scope="module")
def table():
    return block_files.frame()


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    return block_files.written(table, tmp_path_factory.mktemp("records") / "files")


def scanned(folder, **options):
    return afape.scan(folder, block_files.PROBLEM, **({"cluster": "patient", "block_rows": 300} | options))


def compared(data, **options):
    policies = {name: block_files.POLICIES[name] for name in ("all", "some")}
    return afape.compare(data, policies, block_files.Above(), **(SETTINGS | options))


@pytest.fixture(scope="module")
def in_blocks(folder):
    return compared(scanned(folder))


def test_one_block_equals_the_evaluation_in_memory_bit_for_bit(table, folder):
    data = afape.Retrospective(
        block_files.in_file_order(table), block_files.PROBLEM, cluster="patient", weight="w", missing_labels="weigh"
    )
    options = {"estimators": None, "by": "kind", "n_imputations": 2, "imputer": "linear", "random_state": 3}
    whole = compared(data, **options)
    once = compared(scanned(folder, block_rows=1200, weight="w", missing_labels="weigh"), **options)
    pd.testing.assert_frame_equal(once.table, whole.table, check_exact=True)
    for name, evaluation in whole["some"].subgroups.items():
        pd.testing.assert_frame_equal(once["some"].subgroups[name].table, evaluation.table, check_exact=True)
    pd.testing.assert_frame_equal(once.differences(), whole.differences(), check_exact=True)
    assert once["some"]["ipw-semi"]["total"].influence is not None  # rows are there


def test_a_block_is_evaluated_by_the_code_for_tables(folder, in_blocks, tmp_path):
    """Dealt rows as tables of their own, evaluated with the seeds of the blocks, give the same sum."""
    scan = scanned(folder, scratch=tmp_path / "scratch", keep=True)
    compared(scan)
    sums = {}
    rows = 0
    for k in range(scan.n_blocks):
        frame = pd.read_parquet(tmp_path / "scratch" / "rows" / f"block-{k:05d}.parquet")
        entropy = int(np.random.SeedSequence(0).generate_state(1, np.uint64)[0])
        seed = int(np.random.SeedSequence([entropy, k]).generate_state(1, np.uint32)[0])
        found = compared(afape.Retrospective(frame, block_files.PROBLEM, cluster="patient"), random_state=seed)
        rows += len(frame)
        for line in found.table.to_dict("records"):
            key = line["policy"], line["estimator"], line["target"]
            value, variance = sums.get(key, (0.0, 0.0))
            sums[key] = value + len(frame) * line["estimate"], variance + (len(frame) * line["std_error"]) ** 2
    for line in in_blocks.table.to_dict("records"):
        value, variance = sums[line["policy"], line["estimator"], line["target"]]
        assert_allclose(line["estimate"], value / rows, rtol=1e-12)
        assert_allclose(line["std_error"], np.sqrt(variance) / rows, rtol=1e-9, atol=1e-15)


def test_blocks_agree_with_the_whole(table, in_blocks):
    whole = compared(afape.Retrospective(table, block_files.PROBLEM, cluster="patient"))
    for name in ("all", "some"):
        for estimator in ("ipw-semi", "drl-semi"):
            a, b = in_blocks[name][estimator]["total"], whole[name][estimator]["total"]
            assert abs(a.value - b.value) < b.std_error  # blocks of 300 rows are small
            assert_allclose(a.std_error, b.std_error, rtol=0.25)
    assert in_blocks["some"].support.n_rows == 1200
    assert in_blocks["some"].assumption[0].startswith("The rows were dealt at random to 4 blocks of about 300 rows.")


def test_files_sorted_by_hospital_give_the_same_answers_and_files_as_blocks_do_not(tmp_path):
    """Each hospital records one of two groups more often, and the second one never c: as blocks, files would be wrong."""
    table = block_files.frame(2400, seed=5)
    hospital = (np.arange(2400) // 1200).astype(bool)
    table["c"] = table["c"].where(~hospital)
    tables = {"sorted": [table[~hospital], table[hospital]], "mixed": [table.iloc[::2], table.iloc[1::2]]}
    found = {}
    for name, parts in tables.items():
        (tmp_path / name).mkdir()
        for k, part in enumerate(parts):
            part.to_parquet(tmp_path / name / f"part{k}.parquet")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", afape.warnings.AfapeWarning)
            found[name] = compared(scanned(tmp_path / name, block_rows=1200))
            if name == "sorted":
                alone = compared(afape.Retrospective(parts[1], block_files.PROBLEM, cluster="patient"))
    pd.testing.assert_frame_equal(
        found["sorted"].table[["estimate", "std_error"]], found["mixed"].table[["estimate", "std_error"]], rtol=1e-9
    )  # clusters decide, so the blocks are the same
    assert not isinstance(found["sorted"]["all"]["ipw-semi"]["total"], afape.Bounds)
    assert isinstance(alone["all"]["ipw-semi"]["total"], afape.Bounds)


def test_executors_give_the_same_numbers(folder, in_blocks):
    with ThreadPoolExecutor(1) as pool:
        threads = compared(scanned(folder), executor=pool)
    pd.testing.assert_frame_equal(threads.table, in_blocks.table, check_exact=True)


@pytest.mark.slow
def test_processes_give_the_same_numbers_and_end(folder, in_blocks):
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        found = compared(scanned(folder), executor=pool)
    pd.testing.assert_frame_equal(found.table, in_blocks.table, check_exact=True)


class StopError(Exception):
    pass


def test_a_run_that_was_interrupted_does_only_the_rest(folder, in_blocks, tmp_path):
    scratch = tmp_path / "scratch"
    done = []

    def stop_after_two(finished, total):
        done.append((finished, total))
        if finished == 2:
            raise StopError

    with pytest.raises(StopError):
        compared(scanned(folder, scratch=scratch), progress=stop_after_two)
    assert done == [(1, 4), (2, 4)]
    again = []
    with pytest.warns(ResumedWarning, match="2 of 4 blocks are finished"):
        found = compared(scanned(folder, scratch=scratch), progress=lambda k, n: again.append(k))
    assert again == [3, 4]
    pd.testing.assert_frame_equal(found.table, in_blocks.table, check_exact=True)
    assert not scratch.exists()


def test_scratch_is_kept_only_if_asked_and_temporary_folders_never(folder, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    compared(scanned(folder))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="must be among"):
        compared(scanned(folder), estimators=["nothing"])
    assert list(tmp_path.iterdir()) == []
    compared(scanned(folder, scratch=tmp_path / "kept", keep=True))
    with pytest.warns(ResumedWarning, match="4 of 4"):
        compared(scanned(folder, scratch=tmp_path / "kept", keep=True))
    with warnings.catch_warnings():
        warnings.simplefilter("error", ResumedWarning)  # other options: blocks of rows are used again, results are not
        compared(scanned(folder, scratch=tmp_path / "kept", keep=True), confidence=0.9)


def test_a_block_that_fails_for_a_reason_of_its_own_is_left_out_and_named(table, tmp_path):
    rare = table.assign(y=(np.arange(1200) < 3).astype(int))  # three rows of a class in four blocks
    problem = afape.Problem(block_files.PROBLEM.groups, {"b": 1.0}, "y", 10.0)
    scan = afape.scan(block_files.written(rare, tmp_path / "files"), problem, block_rows=300)

    def fails(data, seed):
        from afape.blocks.summary import Summary

        if not data.labels.any():
            raise ValueError("no row of class 1")
        return Summary({"n_rows": len(data)}, {})

    with pytest.warns(
        BlockWarning, match=r"of 4 blocks failed and are left out \(block \d: ValueError: no row of class 1"
    ):
        run = run_blocks(scan, fails, "test", 0, None, None)
    assert len(run.failed) + len(run.summaries) == 4
    assert any("no row of class 1" in note for note in run.notes)


def test_an_error_of_every_block_is_the_error_of_the_run(folder):
    done = []
    with pytest.raises(
        ValueError, match=r"No block could be evaluated\. Block 2: ValueError: 'given' groups must always"
    ):
        compared(scanned(folder), missingness=afape.MAR(given=["b"]), progress=lambda k, n: done.append(k))
    assert len(done) == 3  # the fourth block was not tried
    with pytest.raises(TypeError, match="no option 'estimator'"):
        afape.evaluate(
            scanned(folder), afape.AcquireAll(), block_files.Above(), missingness=block_files.MAR, estimator="cc"
        )
    policy = afape.DecisionRule(lambda values, acquired: 1 // 0)
    with pytest.raises(ZeroDivisionError):  # an error of the user's code is not hidden
        afape.evaluate(scanned(folder), policy, block_files.Above(), **SETTINGS)


def test_arguments_that_do_not_fit_scans_are_refused(folder, table):
    for options, message in (
        ({"by": np.zeros(1200)}, "'by' must name a recorded column"),
        ({"executor": 3}, "'executor' must have the method submit"),
    ):
        with pytest.raises(TypeError, match=message):
            compared(scanned(folder), **options)
    with ThreadPoolExecutor(1) as pool, pytest.raises(TypeError, match="'executor' works on the blocks of a scan"):
        compared(afape.Retrospective(table, block_files.PROBLEM), executor=pool)


def test_what_cannot_be_sent_is_refused_before_work_and_runs_in_turn(folder):
    class Locked(afape.AcquireAll):
        def __reduce__(self):
            raise TypeError("cannot be pickled")

    with ThreadPoolExecutor(1) as pool, pytest.raises(TypeError, match="must be picklable to be sent to workers"):
        afape.evaluate(scanned(folder), Locked(), block_files.Above(), executor=pool, **SETTINGS)
    afape.evaluate(scanned(folder), Locked(), block_files.Above(), **SETTINGS)


def test_a_full_disk_is_told_and_what_is_finished_is_kept(folder, tmp_path, monkeypatch):
    write, scratch = Scratch.write, tmp_path / "scratch"

    def full(self, name, content):
        if name.endswith("00002.summary"):
            from afape.blocks.scratch import _full

            raise _full(self.path, OSError(28, "No space left on device"))
        write(self, name, content)

    monkeypatch.setattr(Scratch, "write", full)
    with pytest.raises(OSError, match=r"scratch folder .* cannot be written to: No space left.*start again"):
        compared(scanned(folder, scratch=scratch))
    monkeypatch.setattr(Scratch, "write", write)
    with pytest.warns(ResumedWarning, match="2 of 4"):
        compared(scanned(folder, scratch=scratch))


def test_warnings_of_blocks_are_given_once(table, tmp_path):
    coded = table.assign(b=table["b"].where(np.arange(1200) % 10 != 0, -999.0))
    folder = block_files.written(coded, tmp_path / "files")
    with pytest.warns(afape.warnings.CodeValuesWarning) as heard:
        compared(scanned(folder))
    told = [str(w.message) for w in heard if w.category is afape.warnings.CodeValuesWarning]
    assert len(told) == 1
    assert "(numbers of block 0; the others are similar)" in told[0]


def test_checks_of_scans_agree_with_those_in_memory(table, folder):
    data = afape.Retrospective(table, block_files.PROBLEM)
    scan = afape.scan(folder, block_files.PROBLEM, block_rows=400)
    for assumption in (afape.MCAR(), block_files.MAR):
        ours, theirs = (afape.check_missingness(rows, assumption) for rows in (scan, data))
        assert set(ours.rejected["recording"] + ours.rejected["of"]) == set(
            theirs.rejected["recording"] + theirs.rejected["of"]
        )
        assert ours.table["rows"].sum() == theirs.table["rows"].sum()
        assert ours.advice == theirs.advice
    ours, theirs = (afape.check_support(rows, afape.AcquireAll(), missingness=block_files.MAR) for rows in (scan, data))
    assert ours.n_rows == theirs.n_rows
    assert ours.groups["rows_recorded"].tolist() == theirs.groups["rows_recorded"].tolist()
    assert_allclose(ours.sets["wanted"], theirs.sets["wanted"], rtol=0.1)


def test_results_of_blocks_can_be_pickled_and_shown(in_blocks, tmp_path):
    again = pickle.loads(pickle.dumps(in_blocks))
    pd.testing.assert_frame_equal(again.table, in_blocks.table, check_exact=True)
    assert in_blocks.to_dict()["evaluations"]["some"]["n_rows"] == 1200
    assert "1200 rows" in repr(in_blocks["some"])
    in_blocks["some"].to_html(tmp_path / "page.html")
