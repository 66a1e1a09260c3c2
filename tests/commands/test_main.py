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


@pytest.mark.parametrize("every", [False, True])
def test_demo_prints_three_policies_and_marks_misses_without_colour(tmp_path, every):
    words = ["demo", "--rows", "5000", "--report", str(tmp_path / "demo.html"), *(["--all"] if every else [])]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    for word in ("nothing", "where unsure", "everything", "the interval misses the true cost"):
        assert word in result.output
    shown = (
        ("ipw-semi", "ipw-semi-gt", "distance")
        if every
        else ("the truth", "common practice", "afape (eff-semi)", "off by")
    )
    for word in shown:
        assert word in result.output
    table = result.output[: result.output.index("distance, acquis." if every else "off by: ")]
    assert any(
        ("common practice" in line and line.rstrip().endswith("misses")) or "*" in line for line in table.splitlines()
    )
    assert max(map(len, table.splitlines())) <= 80
    assert "…" not in result.output
    assert "nan" not in result.output
    assert (tmp_path / "demo.html").stat().st_size > 100_000


def test_help_does_not_wait_for_scikit_learn():
    code = "import sys, afape.commands.main; sys.exit('sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
