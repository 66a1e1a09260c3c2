"""The documentation: its commands run as they are written, it builds, and it leaves nothing public out."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import afape
from afape.cli import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def blocks(text):
    """Kind and content of every block of code, in order."""
    return BLOCK.findall(text)


@pytest.mark.slow
def test_the_tutorial_runs_as_it_is_written(tmp_path, monkeypatch):
    """In an empty folder: tables, files and commands, one after the other; then the Python part as a doctest."""
    monkeypatch.chdir(tmp_path)
    space = {}
    for kind, content in blocks((DOCS / "tutorial.md").read_text()):
        if kind == "python":
            code = "\n".join(line[4:] for line in content.splitlines() if line[:4] in (">>> ", "... "))
            exec(code, space)
        elif kind == "toml":
            Path("records.toml").write_text(content)
        elif kind == "text":
            Path("rule.txt").write_text(content)
        elif kind == "console":
            for line in content.strip().splitlines():
                command = shlex.split(line.removeprefix("$ afape "))
                result = CliRunner().invoke(app, command)
                assert result.exit_code == 0, f"{line}\n{result.output}"
    for name in ("report.html", "tree.html", "again.html"):
        assert (tmp_path / name).stat().st_size > 100_000
    ranks = space["found"].ranking()[["rank_lower", "rank_upper"]]
    assert str(ranks.to_numpy().tolist()) in (DOCS / "tutorial.md").read_text()


@pytest.mark.slow
def test_the_commands_of_the_readme_run_as_they_are_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age, cbc, lactate = rng.normal(size=(3, 800))
    frame = pd.DataFrame({"age": age, "cbc": cbc, "lactate": lactate, "died": (age + cbc + lactate > 0).astype(int)})
    for column in ("cbc", "lactate"):
        frame.loc[rng.random(800) < 0.4, column] = np.nan
    frame.to_csv("records.csv", index=False)
    commands = re.findall(r"^    afape (.*)$", (ROOT / "README.md").read_text(), re.MULTILINE)
    assert len(commands) >= 3
    for command in commands:
        result = CliRunner().invoke(app, shlex.split(command.partition("#")[0]))
        assert result.exit_code == 0, f"{command}\n{result.output}"
    assert (tmp_path / "out.html").stat().st_size > 100_000


def test_problem_files_in_the_documentation_can_be_read(tmp_path):
    found = 0
    for page in DOCS.rglob("*.md"):
        for kind, content in blocks(page.read_text()):
            if kind == "toml":
                (tmp_path / "p.toml").write_text(content)
                afape.read_problem(tmp_path / "p.toml")
                found += 1
    assert found == 2


def test_every_page_is_reached_and_every_link_leads_somewhere():
    pages = {p.relative_to(DOCS).with_suffix("").as_posix() for p in DOCS.rglob("*.md")}
    listed = set(re.findall(r"^([a-z0-9/-]+)$", (DOCS / "index.md").read_text(), re.MULTILINE))
    assert pages - {"index"} == listed
    for page in DOCS.rglob("*.md"):
        for target in re.findall(r"\]\(([^)#]+\.md)", page.read_text()):
            assert (page.parent / target).exists(), (page, target)


def test_commands_are_documented():
    named = {c.name or c.callback.__name__ for c in app.registered_commands}
    page = (DOCS / "commands.md").read_text()
    assert not [name for name in named if f"`afape {name}" not in page]


def test_what_people_use_is_in_the_reference():
    page = (DOCS / "api.md").read_text()
    left_out = [
        name
        for name in afape.__all__
        if not name.endswith(("Warning", "Error")) and not re.search(rf"afape\.{name}\b", page) and name not in BEHIND
    ]
    assert not left_out


# Types that users meet as attributes or as protocols, and what the pages on mechanisms and training will say.
BEHIND = {
    "ChainedImputer", "Classifier", "Frontier", "GraphMechanism", "Identification", "Imputer", "IndependentMechanism",
    "LogisticMechanism", "Optimisation", "Policy", "PricePlane", "Tipping", "ValueRegressor", "brier", "log_loss", "score",
}  # fmt: skip


@pytest.mark.slow
def test_the_site_builds_without_a_network(tmp_path):
    pytest.importorskip("sphinx")
    pytest.importorskip("furo")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    mathematics = (tmp_path / "mathematics.html").read_text()
    assert mathematics.count("<math") > 15
    remote = re.compile(r'<(?:script|link)[^>]*(?:src|href)="(?:https?:)?//')
    assert not [page.name for page in tmp_path.rglob("*.html") if remote.search(page.read_text())]
    assert "Estimate what a policy would cost" in (tmp_path / "api.html").read_text()
