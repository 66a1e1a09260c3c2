"""What is released: a wheel and an archive of the sources that build, install beside nothing, and work."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import afape

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def run(*command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **environment})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_version_stands_in_one_place():
    assert "version" in PROJECT["dynamic"]
    assert re.fullmatch(r"\d+\.\d+\.\d+(\.dev\d+)?", afape.__version__)
    assert "version:" not in (ROOT / "CITATION.cff").read_text().replace("cff-version:", "")
    headings = re.findall(r"^## (.*)", (ROOT / "CHANGES.md").read_text(), re.MULTILINE)
    assert headings[0] == "Ongoing development"
    assert headings[1].startswith(afape.__version__.partition(".dev")[0])


def test_types_and_classifiers():
    assert (ROOT / "src" / "afape" / "py.typed").exists()
    assert "Typing :: Typed" in PROJECT["classifiers"]
    python = PROJECT["requires-python"].removeprefix(">=")
    assert f"Programming Language :: Python :: {python}" in PROJECT["classifiers"]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Archive and wheel; the wheel is built from the archive, and dependencies of the build are not downloaded."""
    pytest.importorskip("build")
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(ROOT))
    (wheel,), (archive,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, archive


@pytest.mark.slow
def test_wheel_and_archive_hold_everything(built):
    wheel, archive = built
    packed = set(zipfile.ZipFile(wheel).namelist())
    here = {f.relative_to(ROOT / "src").as_posix() for f in (ROOT / "src" / "afape").rglob("*") if f.is_file()}
    here = {name for name in here if "__pycache__" not in name}
    assert here <= packed
    assert not [name for name in packed if name.startswith("tests/")]
    with tarfile.open(archive) as sources:
        names = {name.partition("/")[2] for name in sources.getnames()}
    assert {"README.md", "LICENSE", "CHANGES.md", "CITATION.cff", "docs/index.md", "tests/test_packaging.py"} <= names


@pytest.mark.slow
def test_the_wheel_works_in_an_environment_without_the_project(built, tmp_path, monkeypatch):
    """Only its dependencies are there, borrowed from the environment of the tests."""
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env"))
    (site,) = (tmp_path / "env").glob("lib/python*/site-packages")
    zipfile.ZipFile(built[0]).extractall(site)
    dependencies = Path(pytest.__file__).parents[1]
    (site / "dependencies.pth").write_text(
        f"{dependencies}\n"
    )  # its own .pth files, such as the project's, are not read
    python = str(tmp_path / "env" / "bin" / "python")
    code = """
import importlib.metadata, json, afape
from afape.benchmark import describe
from afape.datasets import make_ward
names = [getattr(afape, name) for name in afape.__all__]
assert describe("heloc").is_file()
problem = afape.Problem({"age": ["age"], "cbc": ["cbc"], "lactate": ["lactate"]}, costs={"cbc": 26, "lactate": 12},
                        label="died", misclassification_cost=500)
train, test = afape.Retrospective(make_ward(600), problem).split([0.5, 0.5], random_state=0)
classifier = afape.ImputedClassifier().fit(train)
found = afape.evaluate(test, afape.AcquireNone(), classifier, missingness=afape.MCAR(), estimators=["ipw-semi"])
found.to_html("report.html", sensitivity=False)
found.to_appendix("appendix.md")
print(json.dumps([afape.__file__, importlib.metadata.version("afape"), len(test)]))
"""
    monkeypatch.chdir(tmp_path)
    file, version, rows = json.loads(run(python, "-c", code, PYTHONPATH="", PYTHONSAFEPATH="1"))
    assert Path(file).is_relative_to(site)
    assert version == afape.__version__
    assert rows == 300
    assert (tmp_path / "report.html").stat().st_size > 50_000
    help_text = run(python, "-m", "afape", "--help", PYTHONPATH="", PYTHONSAFEPATH="1")
    assert "compare" in help_text
