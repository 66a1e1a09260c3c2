"""The commands: each has help, runs, and is written about."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from afape.cli import app

ROOT = Path(__file__).parents[1]
STUDIES = ["coverage", "bootstrap", "correction", "robustness", "values"]
COMMANDS = [["demo"], ["init"], ["check"], ["evaluate"], ["compare"], ["train"], *(["study", name] for name in STUDIES)]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_and_is_documented(command):
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Options" in result.output
    assert f"afape {' '.join(command)}" in (ROOT / "README.md").read_text()


def test_demo_prints_every_policy_and_estimator(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--rows", "5000", "--report", str(tmp_path / "demo.html")])
    assert result.exit_code == 0, result.output
    for word in ("Random 10 %", "Random 50 %", "Random 90 %", "ipw-semi", "ipw-semi-gt", "blocking", "distance"):
        assert word in result.output
    assert (tmp_path / "demo.html").stat().st_size > 100_000
    table = result.output[: result.output.index("distance: estimate")]
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in result.output


@pytest.mark.parametrize("name", STUDIES)
def test_studies_write_data_and_a_page(tmp_path, name):
    arguments = ["study", name, "--draws", "2", "--rows", "400", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    summary = pd.read_csv(tmp_path / "summary.csv")
    assert set(summary["draws"]) == {2}
    page = (tmp_path / "README.md").read_text()
    assert f"afape study {name} --draws 2 --rows 400" in page
    for figure in tmp_path.glob("*.svg"):
        assert figure.stat().st_size > 1000
        assert figure.name in page


def test_help_does_not_wait_for_scikit_learn():
    code = "import sys, afape.cli; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_studies_ask_for_matplotlib_before_they_start(tmp_path, monkeypatch):
    import afape.experiments.pages

    monkeypatch.setattr(afape.experiments.pages, "find_spec", lambda name: None)
    result = CliRunner().invoke(app, ["study", "coverage", "--draws", "2", "--out", str(tmp_path / "new")])
    assert result.exit_code == 2
    assert "afape[plot]" in result.output
    assert not (tmp_path / "new").exists()
