"""The walk of an evaluation: nothing is asked twice, and tables that do not fit into memory change nothing."""

import gc
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

import afape
from afape.benchmark.synthetic import synthetic_mar
from afape.walk.table import TableStore


@pytest.fixture(scope="module")
def experiment():
    return synthetic_mar(3000)


@pytest.fixture
def little_memory(monkeypatch):
    """Tables of more than a hundred states are written to a temporary folder."""
    monkeypatch.setattr("afape.run.walk.TableStore", partial(TableStore, budget=100))


def test_no_state_is_asked_about_twice(experiment, little_memory):
    """Neither within an evaluation nor between its parts, also where tables do not fit into memory.

    Only after the walk, some states are asked about again, to notice answers that change.
    """
    classifier, data, _ = experiment.prepare()
    asked = {"policy": [], "classifier": []}

    class Noting:
        def __init__(self, inner, kind):
            self.inner, self.kind = inner, kind

        def note(self, values, acquired):
            keys = np.column_stack([np.nan_to_num(values, nan=-1e9), acquired])
            asked[self.kind].append([row.tobytes() for row in keys])

        def probabilities(self, values, acquired):
            self.note(values, acquired)
            return self.inner.probabilities(values, acquired)

        def predict(self, values, acquired):
            self.note(values, acquired)
            return self.inner.predict(values, acquired)

    policy = Noting(afape.RandomSubset(0.5).bind(data.problem), "policy")
    names = ["blocking", "cc", "ipw-miss", "ipw-semi", "dm-semi", "drl-semi"]
    result = afape.evaluate(
        data,
        policy,
        Noting(classifier, "classifier"),
        missingness=experiment.missingness,
        estimators=names,
        bootstrap=2,
        walk=afape.WalkOptions(chunk_lines=500),
    )
    for name in names:  # parts are computed when they are asked for
        result.parts(name)
    for *calls, again in asked.values():
        keys = [key for call in calls for key in call]
        assert len(keys) > len(data)
        assert len(keys) == len(set(keys))
        assert set(again) < set(keys)
        assert len(again) < len(keys) / 10


NAMES = ["blocking", "ipw-semi", "drl-semi", "eff-semi"]


@pytest.fixture(scope="module")
def held(experiment):
    return evaluated(experiment)


def evaluated(experiment, **options):
    classifier, data, _ = experiment.prepare()
    return afape.evaluate(
        data,
        afape.RandomSubset(0.5),
        classifier,
        missingness=experiment.missingness,
        estimators=NAMES,
        walk=afape.WalkOptions(chunk_lines=500),
        bootstrap=3,
        **options,
    )


@pytest.mark.parametrize("jobs", [None, 2])
def test_tables_on_disk_give_the_same_numbers_and_are_removed_with_the_evaluation(
    experiment, held, jobs, little_memory, monkeypatch, tmp_path
):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    stored = evaluated(experiment, n_jobs=jobs)
    assert list(tmp_path.iterdir())
    assert stored.table.equals(held.table)
    for name in NAMES:
        assert_allclose(stored.parts(name).influence, held.parts(name).influence, rtol=1e-12, atol=1e-12)
    del stored
    gc.collect()
    assert not list(tmp_path.iterdir())
