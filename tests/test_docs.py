"""The documentation: its commands run as written, the names in it exist, it lists all public names, and it builds."""

import importlib.util
import operator
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
from afape.commands.main import app

ROOT = Path(__file__).parents[1]
SPECIFICATION = importlib.util.spec_from_file_location("docs_make", ROOT / "docs" / "make.py")
make = importlib.util.module_from_spec(SPECIFICATION)
SPECIFICATION.loader.exec_module(make)
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.rglob("*.md")]
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
    for page in set(DOCS.rglob("*.md")) - {DOCS / "guides" / "benchmark.md"}:  # its file describes an experiment
        for kind, content in blocks(page.read_text()):
            if kind == "toml":
                (tmp_path / "p.toml").write_text(content)
                afape.read_problem(tmp_path / "p.toml")
                found += 1
    assert found == 3
    for file in DOCS.rglob("*.toml"):
        afape.read_problem(file)


def listed_in(page):
    """Pages in the tables of contents of a page, and in those of the pages listed there."""
    for tree in re.findall(r"```\{toctree\}\n(.*?)```", page.read_text(), re.DOTALL):
        for name in re.findall(r"^([a-z0-9/-]+)$", tree, re.MULTILINE):
            yield page.parent / f"{name}.md"
            yield from listed_in(page.parent / f"{name}.md")


def test_every_page_is_in_the_index():
    assert set(DOCS.rglob("*.md")) - {DOCS / "index.md"} == set(listed_in(DOCS / "index.md"))


def test_what_is_made_is_up_to_date():
    """`python docs/make.py` writes the table of estimators and llms.txt."""
    page = (DOCS / "estimators.md").read_text()
    assert make.with_estimators(page) == page
    assert make.llms() == (DOCS / "llms.txt").read_text()


def test_every_page_with_code_is_run():
    """By pytest as a doctest, by the test of the tutorial, or by that of the mistakes."""
    doctested = [p for p in PAGES if re.search(r"^ *>>> ", p.read_text(), re.MULTILINE) and p != DOCS / "tutorial.md"]
    assert len(doctested) > 20
    assert set(doctested) == set(make.pages())
    for page in set(PAGES) - {DOCS / "howto" / "mistakes.md"}:
        for kind, content in blocks(page.read_text()):
            assert kind != "python" or content.startswith(">>> "), (page, content)


def test_every_picture_is_made_by_the_code_of_its_page():
    for page in PAGES:
        text = page.read_text()
        for picture in re.findall(r"!\[[^\]]+\]\(([\w/.-]+)\)(?!\])", text):
            made = f'savefig("{picture}"' in text or picture == "docs/images/report.png"
            assert made, (page, picture)
            assert 5_000 < (page.parent / picture).stat().st_size < 300_000, picture
    for picture in DOCS.rglob("*.png"):
        assert [p for p in PAGES if f"{picture.name})" in p.read_text()], picture


def test_the_readme_is_short_and_names_the_two_commands():
    text = (ROOT / "README.md").read_text()
    assert len(text.splitlines()) <= 140
    assert "    make demo " in text
    assert "    make test " in text


def test_commands_are_documented():
    named = {c.name or c.callback.__name__ for c in app.registered_commands}
    page = (DOCS / "commands.md").read_text()
    assert not [name for name in named if f"`afape {name}" not in page]


def test_the_reference_lists_all_public_names():
    listed = set(re.findall(r"^\.\. auto\w+:: afape\.(\S+)$", (DOCS / "api.md").read_text(), re.MULTILINE))
    short = {name.rpartition(".")[2] for name in listed}
    rooms = (
        afape.action_values,
        afape.agents,
        afape.imputation,
        afape.missingness,
        afape.optimisation,
        afape.plots,
        afape.results,
    )
    assert set(afape.__all__) <= listed
    assert {name for room in (*rooms, afape.sensitivity_analysis, afape.support) for name in room.__all__} <= short


def test_names_in_the_documentation_exist():
    pytest.importorskip("gymnasium")  # for `afape.gym`
    for page in PAGES:
        for name in set(re.findall(r"(?<![\w/])afape((?:\.[A-Za-z_]\w*)+)", page.read_text())):
            assert operator.attrgetter(name[1:])(afape) is not None, (page, name)


def test_paths_in_the_documentation_exist():
    for page in PAGES:
        for path in re.findall(r"`((?:benchmarks|docs|src|studies|tests)/[\w/.-]+)`", page.read_text()):
            assert (ROOT / path).exists(), (page, path)
        for path in re.findall(r"\]\(((?!https?:)[^)#]+)", page.read_text()):
            if '"' not in path and "'" not in path:  # code such as found["all"](...)
                assert (page.parent / path).exists(), (page, path)


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
    assert "hajek" in (tmp_path / "searchindex.js").read_text()
    assert (tmp_path / "llms.txt").read_text() == (DOCS / "llms.txt").read_text()
