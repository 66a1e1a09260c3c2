"""The commands of the studies: each writes its data and a page."""

from pathlib import Path

import pandas as pd
import pytest
from studies.__main__ import app
from typer.testing import CliRunner

ROOT = Path(__file__).parents[2]
STUDIES = [c.name or c.callback.__name__ for c in app.registered_commands]


@pytest.mark.parametrize("name", STUDIES)
def test_committed_pages_name_their_command(name):
    page = (ROOT / "studies" / name / "README.md").read_text()
    assert f"Made by `python -m studies {name} --draws " in page
    assert f"-m studies {name} " in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("name", ["coverage", "bootstrap", "correction", "robustness", "values"])
def test_studies_write_data_and_a_page(tmp_path, name):
    result = CliRunner().invoke(app, [name, "--draws", "2", "--rows", "400", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    summary = pd.read_csv(tmp_path / "summary.csv")
    assert set(summary["draws"]) == {2}
    page = (tmp_path / "README.md").read_text()
    assert f"python -m studies {name} --draws 2 --rows 400" in page
    for figure in tmp_path.glob("*.svg"):
        assert figure.stat().st_size > 1000
        assert figure.name in page


def test_the_study_of_support_counts_alarms_and_holes(tmp_path):
    result = CliRunner().invoke(app, ["support", "--draws", "1", "--rows", "1500", "--out", str(tmp_path)])
    assert result.exit_code == 0, result.output
    summary = pd.read_csv(tmp_path / "summary.csv")
    assert set(summary["draws"]) == {1}
    smooth, holes = summary[summary["kind"] == "smooth"], summary[summary["kind"] == "hole"]
    assert smooth["false"].mean() == 0
    assert holes["named"].mean() > 0.7
    assert "python -m studies support --draws 1 --rows 1500" in (tmp_path / "README.md").read_text()


def test_a_file_is_no_folder_of_results(tmp_path):
    (tmp_path / "file").write_text("")
    result = CliRunner().invoke(app, ["coverage", "--out", str(tmp_path / "file")])
    assert result.exit_code == 2
    assert "--out" in result.output
    assert "Traceback" not in result.output


def test_the_folder_of_another_study_is_refused(tmp_path):
    (tmp_path / "draws-n400").mkdir()
    (tmp_path / "draws-n400" / "study.txt").write_text("another\n")
    result = CliRunner().invoke(app, ["coverage", "--draws", "2", "--rows", "400", "--out", str(tmp_path)])
    assert result.exit_code == 2
    assert "holds draws of the study 'another'" in result.output
