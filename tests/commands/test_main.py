"""The commands: each has help with an example, and is documented."""

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from afape.commands.main import app

DOCUMENTATION = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
COMMANDS = [c.name or c.callback.__name__ for c in app.registered_commands]


def test_the_commands():
    assert COMMANDS == ["demo", "init", "check", "evaluate", "compare", "train", "reproduce", "benchmark"]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_and_is_documented(command):
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0
    assert "Options" in result.output
    assert f"Example: afape {command}" in result.output
    assert f"`afape {command}" in DOCUMENTATION


def test_demo_prints_every_policy_and_estimator(tmp_path):
    result = CliRunner().invoke(app, ["demo", "--rows", "5000", "--report", str(tmp_path / "demo.html")])
    assert result.exit_code == 0, result.output
    for word in ("Random 10 %", "Random 50 %", "Random 90 %", "ipw-semi", "ipw-semi-gt", "blocking", "distance"):
        assert word in result.output
    assert "imp-mean, blocking and cc are common practice" in result.output
    assert (tmp_path / "demo.html").stat().st_size > 100_000
    table = result.output[: result.output.index("distance, acquis.")]
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in result.output


def test_help_does_not_wait_for_scikit_learn():
    code = "import sys, afape.commands.main; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
