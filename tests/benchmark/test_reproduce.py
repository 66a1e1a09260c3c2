"""The paper's experiments: their mechanisms, and a quick run of all five."""

import json
import os
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from typer.testing import CliRunner

from afape.benchmark import world
from afape.benchmark.claims import verdicts
from afape.benchmark.description import read_description
from afape.benchmark.paper_experiments import EXPERIMENTS, describe
from afape.benchmark.world import make_mechanism
from afape.commands.main import app
from afape.datasets import public
from afape.datasets.heloc import HELOC, load_heloc

ROOT = Path(__file__).parents[2]


def complete_table(name):
    description = read_description(describe(name))
    real = description.table.source != "synthetic"
    if real and HELOC.packaged() is None and not os.environ.get("AFAPE_DATA"):  # never from the network
        pytest.skip("no real tables: set AFAPE_DATA or install teacher-xai")
    return description, world.complete_table(description, None, 0)


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("synthetic-mar", 0.235, 0.25), ("synthetic-mnar", 0.21, 0.23), ("heloc", 0.352, 0.366), ("income", 0.555, 0.57)],
)
def test_the_mechanism_leaves_the_papers_share_complete(name, low, high):
    description, data = complete_table(name)
    mechanism, _ = make_mechanism(description.mechanism, data)
    assert low < mechanism.hide(data, 0).complete.mean() < high


def test_the_mechanism_of_heloc():
    description, data = complete_table("heloc")
    mechanism, missingness = make_mechanism(description.mechanism, data)
    risk = data.values[:, 0]
    one = expit(5 * (risk - risk.mean()) / risk.std())
    required = np.zeros(data.recorded.shape, dtype=bool)
    required[:, [1, 3]] = True
    np.testing.assert_allclose(mechanism.propensity(data).function(data.values, required), one**2, rtol=1e-9)
    assert missingness.given == ["x0"] or tuple(missingness.given) == ("x0",)
    assert 0.35 < (one**4 < 1e-3).mean() < 0.45  # two fifths of the rows
    codes = load_heloc(codes="all-missing", empty_rows="keep")["ExternalRiskEstimate"]
    assert len(data) == 10_459
    np.testing.assert_allclose(risk, codes.fillna(codes.mean()))


def test_the_mechanism_of_income():
    description, data = complete_table("income")
    mechanism, _ = make_mechanism(description.mechanism, data)
    male, age = (data.values[:, data.columns.index(c)] for c in ("sex=Male", "age"))
    male, age = (male - male.mean()) / male.std(), (age - age.min()) / (age.max() - age.min())
    required = np.zeros(data.recorded.shape, dtype=bool)
    required[:, [0, 4, 8]] = True
    expected = expit(1 - male + 4 * age) * expit(male + 3 * age)
    np.testing.assert_allclose(mechanism.propensity(data).function(data.values, required), expected, rtol=1e-9)
    recorded = mechanism.hide(data, 0).recorded
    assert (recorded[:, :5] == recorded[:, :1]).all()
    assert recorded[:, 5:7].all()
    assert (recorded[:, 7:] == recorded[:, 7:8]).all()


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    pytest.importorskip("jax")
    complete_table("heloc")
    folder = tmp_path_factory.mktemp("quick")
    result = CliRunner().invoke(app, ["reproduce", "all", "--quick", "--out", str(folder)])
    assert result.exit_code == 0, result.output
    return folder, result.output


@pytest.mark.slow
def test_a_quick_run_of_all_five(quick):
    folder, output = quick
    page = (folder / "README.md").read_text()
    assert "far too small" in page
    for name in EXPERIMENTS:
        description = read_description(describe(name), quick=True)
        assert description.title in output
        results = pd.read_parquet(folder / name / "results.parquet")
        assert set(results["run"]) == {r.name for r in description.runs}
        assert results.loc[results["estimator"] == "complete", "estimate"].notna().all()
        assert json.loads((folder / name / "manifest.json").read_text())["quick"] is True
        for file in [file for spec in description.figures for file in spec.files.values()]:
            assert (folder / name / f"{file}.png").stat().st_size > 10_000
            assert (folder / name / f"{file}.svg").stat().st_size > 5_000
            assert f"{name}/{file}.png" in page
        assert "Made by" in (folder / name / "README.md").read_text() or "quick run" in page


@pytest.mark.slow
def test_a_quick_run_found_again_is_not_run_again(quick):
    folder, _ = quick
    before = {f: f.stat().st_mtime_ns for f in folder.rglob("draws-*/*.csv")}
    bits = (folder / "heloc" / "results.parquet").read_bytes()
    result = CliRunner().invoke(app, ["reproduce", "heloc", "--quick", "--out", str(folder / "heloc")])
    assert result.exit_code == 0, result.output
    assert {f: f.stat().st_mtime_ns for f in before} == before
    assert (folder / "heloc" / "results.parquet").read_bytes() == bits


def test_unknown_names_and_missing_data_end_with_a_message(tmp_path, monkeypatch):
    result = CliRunner().invoke(app, ["reproduce", "helok", "--out", str(tmp_path / "x")])
    assert result.exit_code == 2
    assert "Did you mean 'heloc'?" in result.output
    assert not (tmp_path / "x").exists()

    def offline(**arguments):
        raise OSError("no route to host")

    def absent(name):
        raise PackageNotFoundError(name)

    monkeypatch.delenv("AFAPE_DATA", raising=False)
    monkeypatch.setattr(public, "distribution", absent)
    monkeypatch.setattr("sklearn.datasets.fetch_openml", offline)
    pytest.importorskip("jax")
    for name in ("heloc", "all"):
        result = CliRunner().invoke(app, ["reproduce", name, "--quick", "--out", str(tmp_path / "y")])
        assert result.exit_code == 2
        assert "three ways" in result.output.replace("\n", " ")
        assert not (tmp_path / "y").exists()  # refused before any experiment runs


def test_the_description_can_be_printed():
    result = CliRunner().invoke(app, ["reproduce", "heloc", "--describe"])
    assert result.exit_code == 0
    assert result.output.strip() == describe("heloc").read_text().strip()


def test_missing_packages_are_named_before_the_work(tmp_path, monkeypatch):
    monkeypatch.setattr("afape.benchmark.runner.find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["reproduce", "synthetic-mar", "--quick", "--out", str(tmp_path / "x")])
    assert result.exit_code == 2
    assert "afape[agents,paper,plot]" in result.output
    assert not (tmp_path / "x").exists()


def test_verdicts_follow_the_committed_results():
    """The page says what its rules make of the committed tables."""
    folder = ROOT / "studies" / "paper"
    if not (folder / "README.md").exists():
        pytest.skip("no committed results")
    page = (folder / "README.md").read_text()
    for verdict in verdicts([_committed(folder / name) for name in EXPERIMENTS]):
        assert verdict.claim in page
        assert verdict.measured in page


def _committed(folder):
    from afape.benchmark.runner import Finished

    description = read_description(describe(folder.name))
    efficiency = folder / "efficiency.csv"
    return Finished(
        description,
        folder,
        pd.read_parquet(folder / "results.parquet"),
        pd.DataFrame(),
        pd.read_csv(efficiency) if efficiency.exists() else pd.DataFrame(),
        0.0,
    )
