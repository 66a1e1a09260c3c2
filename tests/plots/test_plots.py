"""Drawings: on given or new axes, with names as plain text."""

import sys

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure
from matplotlib.text import Text

import afape
from afape import plots
from afape.benchmark.synthetic import synthetic_policies
from afape.plots.style import short_names

mpl.use("Agg")


@pytest.fixture(scope="module")
def found(experiment, parts):
    classifier, data, _ = parts
    names = ["blocking", "ipw-semi", "drl-semi"]
    return afape.compare(
        data.take(np.arange(1500)),
        synthetic_policies(),
        classifier,
        missingness=experiment.missingness,
        estimators=names,
    )


@pytest.fixture(scope="module")
def bounds(experiment, parts):
    classifier, data, _ = parts
    some = data.take(np.arange(1000))
    policies = {"half": afape.RandomSubset(0.5), "none": afape.AcquireNone()}
    return afape.sensitivity(
        some, policies, classifier, missingness=experiment.missingness, bootstrap=0, lambdas=[1, 2]
    )


def drawn(found, bounds, experiment, parts):
    one, data = found["Adaptive"], parts[1]
    return {
        "costs": lambda ax: plots.costs(found, ax=ax),
        "costs of one": lambda ax: plots.costs(one, "ipw-semi", ax=ax),
        "differences": lambda ax: plots.differences(found, ax=ax),
        "convergence": lambda ax: plots.convergence({"drl-semi": one["drl-semi"]["total"]}, truth=3.0, ax=ax),
        "weights": lambda ax: plots.weights(one, ax=ax),
        "support": lambda ax: plots.support(one, ax=ax),
        "balance": lambda ax: plots.balance(one, ax=ax),
        "sensitivity": lambda ax: plots.sensitivity(bounds, ax=ax),
        "missingness": lambda ax: plots.missingness(data, ax=ax),
        "graph": lambda ax: plots.graph(experiment.missingness.graph_on(data), ax=ax),
        "paths": lambda ax: plots.paths(one, ax=ax),
        "comparison": lambda ax: found.plot(ax=ax),
        "frontier": lambda ax: found.frontier().plot(ax),
        "one price": lambda ax: found.price_plane({"x1": (0, 5)}, points=5).plot(ax),
        "two prices": lambda ax: found.price_plane({"x1": (0, 5), "misclassification": (1, 20)}, points=5).plot(ax),
    }


def test_every_plot_draws_on_axes_given_or_new(found, bounds, experiment, parts):
    for name, draw in drawn(found, bounds, experiment, parts).items():
        ax = Figure().subplots()
        assert draw(ax) is ax, name
        artists = len(ax.patches) + len(ax.lines) + len(ax.collections) + len(ax.texts) + len(ax.containers)
        assert artists > 0, name
        new = draw(None)
        assert new.figure is not ax.figure
        new.figure.canvas.draw()
        pyplot.close(new.figure)


def test_bars_are_the_costs(found):
    ax = plots.costs(found, "drl-semi", ax=Figure().subplots())
    ends = sorted(p.get_x() + p.get_width() for p in ax.patches if p.get_x() > 0)
    totals = sorted(e["drl-semi"]["total"].value for e in found.evaluations.values())
    assert ends == pytest.approx(totals)


def test_what_the_first_rows_say_ends_with_the_estimate(found):
    estimate = found["Adaptive"]["drl-semi"]["total"]
    ax = plots.convergence({"drl-semi": estimate}, ax=Figure().subplots())
    x, y = ax.lines[0].get_data()
    assert x[-1] == len(estimate.influence)
    assert y[-1] == pytest.approx(estimate.value)
    with pytest.raises(ValueError, match="lacks 'rows'"):
        plots.convergence(pd.DataFrame({"estimator": ["a"]}))


def test_names_are_no_formulas(experiment, parts):
    classifier, data, _ = parts
    policies = {"a $x_1$ and $ more": afape.AcquireAll(), "b": afape.AcquireNone()}
    some = data.take(np.arange(2000))
    found = afape.compare(some, policies, classifier, missingness=experiment.missingness, estimators=["ipw-semi"])
    plane = found.price_plane({"x1": (0, 5)}, points=5)
    for draw in (plots.costs, afape.Comparison.plot, lambda c: c.frontier().plot(), lambda c: plane.plot()):
        ax = draw(found)
        ax.figure.canvas.draw()
        texts = [t for t in ax.findobj(Text) if "$" in t.get_text()]
        assert {t.get_text() for t in texts} == {"a $x_1$ and $ more"}
        assert not any(t.get_parse_math() for t in texts)
        pyplot.close(ax.figure)


def test_missing_matplotlib_says_what_to_install(found, bounds, experiment, parts, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in drawn(found, bounds, experiment, parts).values():
        with pytest.raises(ModuleNotFoundError, match=r"afape\[plot\]"):
            draw(None)


def test_only_axes_are_drawn_on(found, bounds, experiment, parts):
    for draw in drawn(found, bounds, experiment, parts).values():
        with pytest.raises(TypeError, match="'ax' must be matplotlib Axes or None for a new figure, but is str"):
            draw("figure")


def test_long_names_are_cut_but_still_differ():
    names = [f"laboratory test number {k} (mmol/l)" for k in (1, 2, 12)] + ["age"]
    cut = short_names(names, 16)
    assert cut["age"] == "age"
    assert len(set(cut.values())) == 4
    assert cut[names[1]] == "…2 (mmol/l)"
    assert max(map(len, cut.values())) <= 16


def test_sets_of_many_groups_do_not_cover_each_other():
    """Neither beside nor below each other, and no step is written on a set, where a policy reaches 64 sets."""
    rng = np.random.default_rng(0)
    names = [f"laboratory_{k}" for k in range(6)]
    frame = pd.DataFrame(rng.normal(size=(300, 6)), columns=names).assign(y=rng.integers(0, 2, 300))
    problem = afape.Problem({name: [name] for name in names}, dict.fromkeys(names, 1.0), "y", 5.0)

    class No:
        def predict(self, values, acquired):
            return np.zeros(len(values), dtype=int)

    for policy, crowded in ((afape.agents.RandomSubset(0.5), True), (afape.AcquireAll(), False)):
        found = afape.evaluate(
            afape.Retrospective(frame, problem), policy, No(), missingness=afape.MCAR(), estimators=["ipw-semi"]
        )
        ax = plots.paths(found)
        ax.figure.canvas.draw()
        boxes = [t.get_bbox_patch().get_window_extent() for t in ax.texts if t.get_bbox_patch()]
        steps = [t.get_window_extent() for t in ax.texts if not t.get_bbox_patch()]
        assert len(boxes) == (22 if crowded else 7)
        assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])
        assert not any(a.overlaps(b) for a in boxes for b in steps)
        assert any("laboratory_0 +" in t.get_text() for t in ax.texts)
        pyplot.close(ax.figure)
