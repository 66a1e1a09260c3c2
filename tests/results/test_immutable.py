"""What a result hands out can be edited without a change of the result."""

from contextlib import suppress

import numpy as np
import pandas as pd
import pytest

import afape
from afape.benchmark.synthetic import synthetic_mar


@pytest.fixture(scope="module")
def compared():
    experiment = synthetic_mar(1500)
    classifier, data, _ = experiment.prepare()
    policies = {"all": afape.AcquireAll(), "half": afape.RandomSubset(0.5)}
    return afape.compare(
        data, policies, classifier, missingness=experiment.missingness, estimators=["ipw-semi", "drl-semi"], bootstrap=2
    )


def spoil(thing):
    if isinstance(thing, pd.DataFrame):
        for column in list(thing):
            thing[column] = None
    elif isinstance(thing, np.ndarray):
        with pytest.raises(ValueError, match="read-only"):
            thing[:] = 0
    elif isinstance(thing, dict):
        thing.clear()


def everything(result):
    """All that a comparison shows."""
    shown = [repr(result), repr(result.differences()), repr(result.ranking()), repr(result.to_dict())]
    for evaluation in result.evaluations.values():
        shown += [
            repr(evaluation),
            repr(evaluation.to_dict()),
            repr(evaluation.parts().table),
            repr(evaluation.support),
        ]
        shown += [evaluation.table.to_string(), evaluation.support.sets.to_string()]
    return shown


def test_edits_of_what_a_result_hands_out_do_not_change_it(compared, tmp_path):
    before = everything(compared)
    compared["all"].to_html(tmp_path / "before.html")
    for thing in (compared, *compared.evaluations.values()):
        for holder in (thing, getattr(thing, "support", None), getattr(thing, "paths", None)):
            for name in [n for n in dir(holder) if not n.startswith("_")]:
                with suppress(TypeError, ValueError, AttributeError):  # some properties need arguments of `evaluate`
                    spoil(getattr(holder, name))
    for evaluation in compared.evaluations.values():
        spoil(evaluation["ipw-semi"])
        spoil(evaluation["ipw-semi"]["total"].influence)
        spoil(evaluation["ipw-semi"]["total"].replicates)
        parts = evaluation.parts()
        for name in ("table", "rates", "counts", "confusion"):
            spoil(getattr(parts, name))
    assert everything(compared) == before
    compared["all"].to_html(tmp_path / "after.html")
    assert (tmp_path / "after.html").stat().st_size == (tmp_path / "before.html").stat().st_size


def test_arrays_of_problem_and_records_cannot_be_written_to(compared):
    data = compared["all"].origin.data
    for array in (data.values, data.recorded, data.labels, data.costs, data.column_group, data.source_column):
        spoil(array)
    for array in (data.problem.prices, data.problem.free):
        spoil(array)


class TestLabelled:
    """Labelled costs and mappings are matched by label."""

    GROUPS, COSTS = {"a": ["a"], "b": ["b"]}, {"b": 1.0}

    def matrix(self, table, classes):
        return afape.Problem(self.GROUPS, self.COSTS, "y", table, classes).cost_matrix(len(classes), classes)

    def test_a_cost_matrix_with_the_numbers_of_the_classes_is_matched_by_them(self):
        table = pd.DataFrame([[0, 1], [7, 0]])  # true 1, predicted 0 costs 7
        assert self.matrix(table, [1, 0]).tolist() == [[0, 7], [1, 0]]
        assert self.matrix(table, [0, 1]).tolist() == [[0, 1], [7, 0]]

    def test_a_cost_matrix_without_labels_has_the_order_of_the_classes(self):
        assert self.matrix(pd.DataFrame([[0, 1], [7, 0]]), ["no", "yes"]).tolist() == [[0, 1], [7, 0]]

    @pytest.mark.parametrize(
        "spoiled",
        [
            {"classes": [1, "1"]},
            {"categories": {"a": [1, "1"]}},
        ],
    )
    def test_names_that_look_the_same_are_refused(self, spoiled):
        good = {"groups": self.GROUPS, "costs": self.COSTS, "label": "y", "misclassification_cost": 1.0}
        with pytest.raises(ValueError, match="two names that look the same"):
            afape.Problem(**(good | spoiled))

    def test_groups_have_texts_as_names(self):
        with pytest.raises(TypeError, match=r"'groups' must be a mapping .* with texts as names, but one name is 1"):
            afape.Problem({1: ["a"], "1": ["b"]}, {}, "y", 1.0)

    def test_arrays_of_one_set_under_two_keys_are_refused(self, compared):
        evaluation = compared["all"]
        data = evaluation.origin.data
        n = len(data)
        names = data.problem.group_names
        arrays = {(names[1], names[2]): np.full(n, 0.5), (names[2], names[1]): np.full(n, 0.4)}
        with pytest.raises(ValueError, match="one array per set of groups"):
            afape.KnownPropensity.from_arrays(arrays).lookup(data)
