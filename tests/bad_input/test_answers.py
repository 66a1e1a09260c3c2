"""Bad answers of models are refused; what cannot be estimated has a reason."""

import numpy as np
import pytest
from good_input import NAN, WEAK_SIMULATION, Bad, N, World, frame, known

import afape

# ----------------------------------------------------------------------------------- nonsense that only a call shows


class Says:
    """Policy, classifier or both: returns what the function makes of values and acquired."""

    def __init__(self, answer):
        self.answer = answer

    def probabilities(self, values, acquired):
        return self.answer(len(values))

    predict = probabilities


def every_row(*answer):
    return lambda n: np.tile(answer, (n, 1))


NONSENSE = [
    *(
        Bad(
            f"policy: {what}",
            lambda w, answer=answer: w.evaluate(policy=Says(answer)),
            ValueError,
            rf"policy Says must return {match}",
        )
        for what, answer, match in (
            ("no stop column", every_row(0.0, 0.5, 0.5), r"shape \(n, G \+ 1\), here \(40, 4\).*returned \(40, 3\)"),
            (
                "NaN",
                every_row(0.0, NAN, 0.0, 1.0),
                "finite probabilities, but .* in 40 of 40 states, first in row 0",
            ),
            ("complex", every_row(0.0, 0.5, 0.0, 0.5 + 0j), "an array of numbers"),
            ("negative", every_row(0.0, -0.5, 0.5, 1.0), "probabilities that are not negative"),
            ("sum", every_row(0.0, 0.5, 0.0, 0.4), "probabilities that sum to 1"),
            ("free group", every_row(0.5, 0.5, 0.0, 0.0), "probability 0 for every acquired group"),
            (
                "group again",
                every_row(0.0, 1.0, 0.0, 0.0),
                "probability 0 for every acquired group, .* row 1:",
            ),
        )
    ),
    *(
        Bad(
            f"classifier: {what}",
            lambda w, answer=answer: w.evaluate(classifier=Says(answer)),
            ValueError,
            rf"classifier Says must return {match}",
        )
        for what, answer, match in (
            ("one code for all", lambda n: 0, r"one label code per row, shape \(40,\), but returned \(\)"),
            ("labels", lambda n: ["no"] * n, r"label codes 0\.\.1, but returned .*'no'.*data\.classes"),
            ("probabilities", lambda n: np.full(n, 0.5), r"label codes 0\.\.1, but returned .*0\.5"),
            ("NaN", lambda n: np.full(n, NAN), r"label codes 0\.\.1, but returned .*nan"),
            (
                "out of range",
                lambda n: np.full(n, 2),
                r"label codes 0\.\.1, but .* in 40 of 40 states, first in row 0: 2",
            ),
        )
    ),
    *(
        Bad(
            f"known propensity: {what}",
            lambda w, answer=answer: w.evaluate(propensity=known(answer), estimators=["ipw-semi"]),
            ValueError,
            rf"KnownPropensity\(function\) must {match}",
        )
        for what, answer, match in (
            ("zero", np.zeros, r"lie in \(0, 1\], but 30 of 30 values do not, the first 0\.0 for row 1\."),
            ("above 1", lambda n: np.full(n, 1.5), r"lie in \(0, 1\].*the first 1\.5"),
            ("complex", lambda n: np.full(n, 0.5 + 0.1j), "return 30 numbers"),
            ("negative", lambda n: np.full(n, -0.5), r"lie in \(0, 1\].*the first -0\.5"),
            ("NaN", lambda n: np.full(n, NAN), r"lie in \(0, 1\].*the first nan"),
            (
                "one bad value",
                lambda n: np.where(np.arange(n) == 2, 0.0, 0.5),
                r"lie in \(0, 1\], but 1 of 30 .* row 3\.",
            ),
            ("one number", lambda n: 0.5, r"return shape \(30,\), but returned \(\)"),
            ("a column", lambda n: np.full((n, 1), 0.5), r"return shape \(30,\), but returned \(30, 1\)"),
            ("text", lambda n: ["often"] * n, "return"),
        )
    ),
    Bad(
        "simulation that leaves out what the policy does",
        lambda w: w.evaluate(walk=WEAK_SIMULATION),
        ValueError,
        "'simulation' must give positive probability to every action .* AcquireNone gives 0 in .* row 1 ",
    ),
]


@pytest.mark.parametrize("bad", NONSENSE, ids=lambda bad: bad.what)
def test_nonsense_from_a_model_is_refused(bad):
    """Row 0 lacks b, row 1 has it; b is recorded in 30 of 40 rows."""
    with pytest.raises(bad.error, match=bad.match):
        bad.attempt(World())


@pytest.mark.filterwarnings("ignore::afape.warnings.NormalizerWarning")
def test_known_propensity_may_be_exactly_one():
    assert "ipw-semi" in World().evaluate(propensity=known(np.ones), estimators=["ipw-semi"])


# ------------------------------------------------------------------------------------------- no answer, with a reason


def never_complete():
    """Build records of which every row has either b or cd and no row has both."""
    table = frame(b=np.arange(N) / N, c=1.0, d=1.0)
    table.loc[::2, "b"] = NAN
    table.loc[1::2, ["c", "d"]] = NAN
    return table


@pytest.mark.parametrize("propensity", [None, [None, known(lambda n: np.full(n, 0.5))]], ids=["learned", "both"])
@pytest.mark.filterwarnings("ignore::afape.warnings.AssumptionWarning", "ignore::afape.warnings.BalanceWarning")
def test_every_row_incomplete_leaves_some_estimators_without_answer(propensity):
    world = World()
    result = world.evaluate(data=world.data(never_complete()), propensity=propensity)
    suffixes = [""] if propensity is None else ["", "-gt"]
    silent = ["cc", *("ipw-miss" + s for s in suffixes)]
    speaking = ["imp-mean", "blocking", "mi", *(n + s for n in ("ipw-semi", "drl-semi", "eff-semi") for s in suffixes)]
    assert set(result.table["estimator"]) == {*silent, *speaking, "dm-semi"}
    for name in silent:
        lines = result.table[result.table["estimator"] == name]
        assert lines[["estimate", "std_error", "lower", "upper"]].isna().all(axis=None)
        assert set(lines["note"]) == {"not estimable: no row has every group recorded"}
        assert name not in result
        with pytest.raises(
            afape.NotEstimableError, match=f"'{name}' is not estimable: no row has every group recorded"
        ):
            result[name]
    for name in speaking:
        lines = result.table[result.table["estimator"] == name]
        assert np.isfinite(lines[["estimate", "std_error", "lower", "upper"]]).all(axis=None)
        assert not any("not estimable" in note for note in lines["note"])
        assert result[name]["total"].value > 0


@pytest.mark.filterwarnings("ignore::afape.warnings.AssumptionWarning", "ignore::afape.warnings.BalanceWarning")
def test_a_policy_that_nobody_followed_has_bounds_alone():
    world = World()
    with pytest.warns(afape.warnings.SupportWarning, match=r"want a set of groups that is not recorded in any row"):
        result = world.evaluate(
            data=world.data(never_complete()), policy=afape.AcquireAll(), estimators=["ipw-semi", "blocking"]
        )
    assert "blocking" in result
    assert result.support.unsupported == pytest.approx(1.0, abs=0.05)
    bounds = result["ipw-semi"]["misclassification"]
    assert isinstance(bounds, afape.Bounds)
    costs = world.data(never_complete()).costs
    assert bounds.bound_lower >= costs.min() - 1e-9
    assert bounds.bound_upper <= costs.max() + 1e-9
    assert result.to_dict()["table"][0]["estimate"] is None


def test_an_estimator_that_was_not_asked_for_is_named():
    result = World().evaluate(estimators=["cc"])
    with pytest.raises(KeyError, match=r"No estimator 'ipw-semi' here. The estimators are \['cc'\]"):
        result["ipw-semi"]
