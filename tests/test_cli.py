"""The commands: each has help, runs, and is written about."""

import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from afape.cli import app

ROOT = Path(__file__).parents[1]
COMMANDS = [["demo"], ["study", "coverage"]]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_has_help_and_is_documented(command):
    result = CliRunner().invoke(app, [*command, "--help"])
    assert result.exit_code == 0
    assert "Options" in result.output
    assert f"afape {' '.join(command)}" in (ROOT / "README.md").read_text()


def test_demo_prints_every_policy_and_estimator():
    result = CliRunner().invoke(app, ["demo", "--rows", "5000"])
    assert result.exit_code == 0, result.output
    for word in ("Random 10 %", "Random 50 %", "Random 90 %", "ipw-semi", "ipw-semi-gt", "blocking", "distance"):
        assert word in result.output
    assert max(map(len, result.output.splitlines())) <= 80
    assert "…" not in result.output


def test_coverage_study_writes_data_page_and_figure(tmp_path):
    arguments = ["study", "coverage", "--draws", "3", "--rows", "300", "--out", str(tmp_path)]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    summary = pd.read_csv(tmp_path / "summary.csv")
    assert set(summary["draws"]) == {3}
    assert (tmp_path / "coverage.svg").stat().st_size > 1000
    assert "--draws 3 --rows 300" in (tmp_path / "README.md").read_text()


def test_help_does_not_wait_for_scikit_learn():
    code = "import sys, afape.cli; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
