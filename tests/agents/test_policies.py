"""Policies that come with the package, and the check of what any policy returns."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import afape
from afape import AcquireAll, AcquireNone, DecisionRule, FixedOrder, Problem, RandomSubset, Retrospective
from afape.agents.policy import ask_policy, bind


def priced(prices):
    """Problem with groups g0, g1, ... of one column each, at these prices."""
    groups = {f"g{j}": [f"x{j}"] for j in range(len(prices))}
    costs = {f"g{j}": price for j, price in enumerate(prices)}
    return Problem(groups, costs, label="y", misclassification_cost=10.0)


def ask(policy, *acquired):
    """Probabilities in states given as rows of 0 and 1."""
    acquired = np.array(acquired, dtype=bool)
    return policy.probabilities(np.full(acquired.shape, np.nan), acquired)


def final_sets(policy, problem):
    """Probability of each final set, by walking the lattice one state at a time from the free groups."""
    ended = {}
    waiting = {frozenset(np.flatnonzero(problem.free).tolist()): 1.0}
    while waiting:
        have, reach = waiting.popitem()
        state = [g in have for g in range(problem.n_groups)]
        *acquire, stop = ask(policy, state)[0]
        ended[have] = ended.get(have, 0.0) + reach * stop
        for group, probability in enumerate(acquire):
            if probability:
                assert group not in have
                waiting[have | {group}] = waiting.get(have | {group}, 0.0) + reach * probability
    return {have: probability for have, probability in ended.items() if probability}


# ----------------------------------------------------------------------------------------------------- RandomSubset


LAYOUTS = [(1,), (0,), (1, 1), (0, 1, 1), (1, 0, 1), (1, 1, 0), (2, 0, 0, 3, 1), (0, 5, 0, 5, 0), (1, 2, 3, 4)]


@pytest.mark.parametrize("p", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("prices", LAYOUTS, ids=str)
def test_random_subset_draws_every_costly_group_independently(prices, p):
    problem = priced(prices)
    free = frozenset(np.flatnonzero(problem.free).tolist())
    costly = [g for g, price in enumerate(prices) if price]
    expected = {
        free | set(taken): p**k * (1 - p) ** (len(costly) - k)
        for k in range(len(costly) + 1)
        for taken in combinations(costly, k)
    }
    found = final_sets(bind(RandomSubset(p), problem), problem)
    assert found.keys() == expected.keys()
    assert_allclose([found[s] for s in expected], list(expected.values()), rtol=1e-12)


@pytest.mark.parametrize("prices", LAYOUTS, ids=str)
@pytest.mark.parametrize("p", [0, 1])
def test_random_subset_at_the_ends_takes_nothing_or_everything(prices, p):
    problem = priced(prices)
    everything = frozenset(range(len(prices)))
    free = frozenset(np.flatnonzero(problem.free).tolist())
    assert final_sets(bind(RandomSubset(p), problem), problem) == {everything if p else free: 1.0}


def test_random_subset_step_by_step():
    policy = RandomSubset(0.3).bind(priced([1, 1, 0, 1]))  # g2 is free
    found = ask(policy, [0, 0, 1, 0], [1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 1, 1])
    expected = [
        [0.3, 0.7 * 0.3, 0, 0.7 * 0.7 * 0.3, 0.7 * 0.7 * 0.7],
        [0, 0.3, 0, 0.7 * 0.3, 0.7 * 0.7],
        [0, 0, 0, 0.3, 0.7],  # g0 was passed over and never comes back
        [0, 0, 0, 0, 1],
    ]
    assert_allclose(found, expected, rtol=1e-12)


def test_random_subset_pays_its_share_of_every_price():
    problem = priced([7.0, 0, 2.0])
    frame = pd.DataFrame({"x0": [1.0, 2.0], "x1": [1.0, 2.0], "x2": [1.0, 2.0], "y": [0, 1]})
    cost = afape.true_cost(Retrospective(frame, problem), RandomSubset(0.25), AlwaysZero())
    assert cost["acquisition"].value == pytest.approx(0.25 * (7 + 2), rel=1e-12)
    assert cost["misclassification"].value == pytest.approx(10 / 2, rel=1e-12)


# -------------------------------------------------------------------------------------------------- plain baselines


class AlwaysZero:
    def predict(self, values, acquired):
        return np.zeros(len(values), dtype=int)


def path(policy, problem):
    """Groups that a deterministic policy acquires, in order."""
    state, order = problem.free.copy(), []
    while True:
        p = ask(policy, state)[0]
        assert sorted(p) == [0] * problem.n_groups + [1]
        action = int(p.argmax())
        if action == problem.n_groups:
            return order
        assert not state[action]
        state[action] = True
        order.append(action)


@pytest.mark.parametrize(
    ("policy", "prices", "order"),
    [
        (FixedOrder(["g2", "g0"]), [1, 1, 1], [2, 0]),
        (FixedOrder(["g0", "g1", "g2"]), [1, 1, 1], [0, 1, 2]),
        (FixedOrder(("g2", "g1")), [1, 0, 1], [2]),  # g1 is free: there already
        (FixedOrder([]), [1, 1], []),
        (AcquireAll(), [1, 1, 1], [0, 1, 2]),
        (AcquireAll(), [1, 0, 1], [0, 2]),
        (AcquireAll(), [0, 0], []),
        (AcquireNone(), [1, 0, 1], []),
        (DecisionRule(lambda values, acquired: np.where(acquired[:, 1], 3, 1)), [1, 1, 1], [1]),
    ],
    ids=repr,
)
def test_the_way_of_a_deterministic_policy(policy, prices, order):
    problem = priced(prices)
    assert path(bind(policy, problem), problem) == order


def test_fixed_order_decides_row_by_row():
    policy = FixedOrder(["g1", "g0"]).bind(priced([1, 1]))
    assert ask(policy, [0, 0], [0, 1], [1, 0], [1, 1]).tolist() == [[0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_decision_rule_sees_values_and_acquired():
    def threshold(values, acquired):
        return np.where((values[:, 0] > 0) & ~acquired[:, 1], 1, 2)

    values, acquired = np.array([[1.0, np.nan], [-1.0, np.nan], [1.0, 2.0]]), np.array([[1, 0], [1, 0], [1, 1]], bool)
    assert DecisionRule(threshold).probabilities(values, acquired).tolist() == [[0, 1, 0], [0, 0, 1], [0, 0, 1]]


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ([0, 1], r"function of DecisionRule\(wrong\) must return one whole number per row, shape \(3,\)"),
        ([[0], [1], [2]], r"returned int64 of shape \(3, 1\)"),
        ([0.0, 1.0, 2.0], "one whole number per row.*returned float64"),
        (["g0", "g1", "stop"], "one whole number per row"),
        (None, "one whole number per row"),
        ([0, 3, 1], "must return group indices, or 2 to stop, but returned 3"),
        ([0, 1, -1], "must return group indices, or 2 to stop, but returned -1"),
    ],
)
def test_decision_rule_refuses_what_is_no_action(returned, message):
    def wrong(values, acquired):
        return returned

    with pytest.raises(ValueError, match=message):
        ask(DecisionRule(wrong), [0, 0], [0, 0], [0, 0])


@pytest.mark.parametrize("policy", [RandomSubset(0.5), FixedOrder(["g0"]), AcquireAll()], ids=repr)
def test_a_policy_that_needs_the_problem_says_so(policy):
    with pytest.raises(RuntimeError, match=r"is not bound to a problem yet.*policy\.bind\(problem\)") as caught:
        ask(policy, [0, 0])
    assert type(policy).__name__ in str(caught.value)


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: RandomSubset(-0.1), ValueError, r"'p' must lie in \[0, 1\], but is -0.1"),
        (lambda: RandomSubset(1.1), ValueError, r"'p' must lie in \[0, 1\]"),
        (lambda: RandomSubset(float("nan")), ValueError, r"'p' must lie in \[0, 1\], but is nan"),
        (lambda: RandomSubset("half"), (TypeError, ValueError), r"'p' must.*'half'"),
        (lambda: FixedOrder("g0"), TypeError, "'groups' must be a list of group names, but is 'g0'"),
        (lambda: FixedOrder(["g0", "g7"]).bind(priced([1, 1])), ValueError, r"'g7' is not a group.*\['g0', 'g1'\]"),
        (lambda: FixedOrder(["g0", "g0"]).bind(priced([1, 1])), ValueError, "'groups' must name each group once"),
        (lambda: DecisionRule("stop"), TypeError, "'function' must be callable, but is str"),
    ],
)
def test_policies_refuse_bad_arguments(make, error, message):
    with pytest.raises(error, match=message):
        make()


def test_a_policy_of_ones_own_is_bound_once():
    class Curious:
        def bind(self, problem):
            told.append(problem)
            return AcquireNone()

        def probabilities(self, values, acquired):
            raise AssertionError("the bound policy answers")

    told, problem = [], priced([1, 0])
    assert ask(bind(Curious(), problem), [0, 1]).tolist() == [[0, 0, 1]]
    assert told == [problem]


@pytest.mark.parametrize("bound", [None, object(), AcquireNone], ids=["nothing", "object", "class"])
def test_what_bind_returns_has_to_be_a_policy(bound):
    class Careless(AcquireNone):
        def bind(self, problem):
            return bound

    with pytest.raises(TypeError, match=r"must have a method probabilities\(values, acquired\)"):
        bind(Careless(), priced([1]))


# ------------------------------------------------------------------------------------- what a policy may not return


class Says:
    """A policy that returns the same answer whatever it is asked."""

    def __init__(self, answer):
        self.answer = answer

    def probabilities(self, values, acquired):
        return self.answer


GOOD = [0.5, 0.0, 0.5]
ROWS = np.array([11, 22, 33])
ACQUIRED = np.array([[0, 1], [0, 1], [0, 1]], dtype=bool)

NONSENSE = {
    "stop column forgotten": ([[0.5, 0.5]] * 3, r"must return shape \(n, G \+ 1\), here \(3, 3\).*returned \(3, 2\)"),
    "one row too few": ([GOOD] * 2, r"here \(3, 3\).*returned \(2, 3\)"),
    "one vector": (GOOD, r"returned \(3,\)"),
    "nothing": (None, r"returned \(\)"),
    "text": ([["a", "b", "c"]] * 3, "policy Says must return"),
    "rows of different length": ([[1.0], [0.5, 0.5], GOOD], "policy Says must return"),
    "NaN": (
        [GOOD, [0.5, 0.0, np.nan], [np.nan, 0.0, 1.0]],
        "finite probabilities, but breaks .* in 2 of 3 .* row 22",
    ),
    "infinite": ([GOOD, GOOD, [np.inf, 0.0, 0.0]], "finite probabilities, but breaks .* in 1 of 3 .* row 33"),
    "infinite both ways": (
        [GOOD, [np.inf, 0.0, -np.inf], GOOD],
        "finite probabilities, but breaks .* in 1 of 3 .* row 22",
    ),
    "negative": ([GOOD, [-0.5, 0.0, 1.5], GOOD], r"not negative, but breaks .* in 1 of 3 .* row 22: \[-0\.5"),
    "sum too small": (
        [[0.5, 0.0, 0.4], GOOD, GOOD],
        r"sum to 1 within 1e-06, but breaks .* in 1 of 3 .* row 11: \[0\.5",
    ),
    "sum too large": ([GOOD, GOOD, [0.6, 0.0, 0.5]], "sum to 1 within 1e-06, but breaks .* in 1 of 3 .* row 33"),
    "sum barely off": (
        [GOOD, [0.5, 0.0, 0.500002], GOOD],
        "sum to 1 within 1e-06, but breaks .* in 1 of 3 .* row 22",
    ),
    "logits": ([[2.0, -1.0, 0.3]] * 3, "not negative, but breaks .* in 3 of 3 .* row 11"),
    "acquired already": (
        [GOOD, [0.5, 0.25, 0.25], [0, 1, 0]],
        "probability 0 for every acquired group, but breaks .* in 2 of 3 .* row 22",
    ),
}


@pytest.mark.parametrize(("answer", "message"), NONSENSE.values(), ids=NONSENSE)
def test_nonsense_is_refused_with_policy_and_first_bad_row(answer, message):
    with pytest.raises(ValueError, match=message) as caught:
        ask_policy(Says(answer), np.zeros((3, 2)), ACQUIRED, ROWS)
    assert "policy Says" in str(caught.value)


@pytest.mark.parametrize(
    "answer",
    [
        [GOOD] * 3,
        np.array([[1, 0, 0], [0, 0, 1], [1, 0, 0]]),
        np.array([[1, 0, 0]] * 3, dtype=bool),
        np.array([GOOD] * 3, dtype=np.float32),
        pd.DataFrame([GOOD] * 3),
        [[0.1 + 0.2, 0.0, 0.7]] * 3,  # 1.0000000000000002 or so
        [[0.5, 0.0, 0.5 + 5e-7]] * 3,
    ],
    ids=["list", "whole", "booleans", "float32", "table", "rounding", "within tolerance"],
)
def test_probabilities_of_any_kind_are_taken(answer):
    found = ask_policy(Says(answer), np.zeros((3, 2)), ACQUIRED, ROWS)
    assert found.dtype == float
    assert_array_equal(found, np.asarray(answer, dtype=float))


# ------------------------------------------------------------------------------------------------- inside evaluate


def small_table(n=60):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(n, 3))
    frame = pd.DataFrame(x, columns=["x0", "x1", "x2"]).assign(y=(x.sum(axis=1) > 0).astype(int))
    data = Retrospective(frame, priced([0, 1, 2]))
    return data.hide(np.column_stack([np.ones(n, bool), rng.random(n) < 0.7, rng.random(n) < 0.7]))


class SignOfSum:
    def predict(self, values, acquired):
        return (np.nansum(values, axis=1) > 0).astype(int)


def test_an_error_in_evaluate_names_the_row_of_the_data():
    data = small_table()
    odd = float(data.values[17, 0])

    class Slips:
        def probabilities(self, values, acquired):
            p = np.tile([0.0, 0.0, 0.0, 1.0], (len(values), 1))
            p[values[:, 0] == odd, 3] = 0.9
            return p

    with pytest.raises(ValueError, match=r"policy Slips must .* sum to 1 .*row 17:"):
        afape.evaluate(data, Slips(), SignOfSum(), missingness=afape.MCAR())


@pytest.mark.parametrize("policy", [RandomSubset(0.5), AcquireAll(), FixedOrder(["g2"])], ids=repr)
def test_a_policy_sees_nothing_but_what_it_acquired(policy):
    class Watcher:
        def __init__(self, inner):
            self.inner = inner

        def bind(self, problem):
            return Watcher(self.inner.bind(problem))

        def probabilities(self, values, acquired):
            watched.append(np.isnan(values) == ~acquired)
            return self.inner.probabilities(values, acquired)

    watched = []
    afape.evaluate(small_table(), Watcher(policy), SignOfSum(), missingness=afape.MCAR(), estimators=["ipw-semi"])
    assert len(watched) > 1
    assert all(seen.all() for seen in watched)


@pytest.mark.parametrize("spoiled", ["values", "acquired"])
def test_a_policy_that_writes_into_its_arguments_changes_no_result(spoiled):
    class InPlace:
        """Imputes in place, as policies are tempted to, or keeps book in place."""

        def probabilities(self, values, acquired):
            p = np.zeros((len(values), 4))
            p[:, 3] = acquired[:, 1]
            p[:, 1] = ~acquired[:, 1]
            if spoiled == "values":
                values[np.isnan(values)] = 100.0
            else:
                acquired[:, 1] = True
            return p

    data = small_table()
    settings = {"missingness": afape.MCAR(), "estimators": ["ipw-semi", "blocking"]}
    clean = afape.evaluate(data, FixedOrder(["g1"]), SignOfSum(), **settings)
    try:
        found = afape.evaluate(data, InPlace(), SignOfSum(), **settings)
    except ValueError as error:
        assert "read-only" in str(error)  # noqa: PT017 - an error is one of two right answers
    else:
        assert_array_equal(found.table["estimate"], clean.table["estimate"])
