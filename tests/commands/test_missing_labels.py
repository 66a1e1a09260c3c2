"""Labels with gaps, and row weights, on the command line."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from afape.commands.main import app

PROBLEM = """
label = "died"
{labels}
weight = "w"
misclassification_cost = {{ 0 = {{ 1 = 5.0 }}, 1 = {{ 0 = 9.0 }} }}
[groups]
age = {{ columns = ["age"] }}
lab = {{ columns = ["lab"], price = 1.0 }}
[missingness]
assumption = "MAR"
given = ["age"]
"""


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    age, lab = rng.normal(size=(2, 600))
    died = (rng.random(600) < 1 / (1 + np.exp(-age - lab))).astype(float)
    with_label = rng.random(600) < 1 / (1 + np.exp(-0.3 - age))
    return pd.DataFrame(
        {
            "age": age,
            "lab": np.where(rng.random(600) < 0.7, lab, np.nan),
            "died": np.where(with_label, died, np.nan),
            "w": rng.integers(1, 4, size=600),
        }
    )


@pytest.fixture
def folder(tmp_path, monkeypatch, table):
    monkeypatch.chdir(tmp_path)
    table.to_csv("rows.csv", index=False)
    for name in ("weigh", "drop"):
        (tmp_path / f"{name}.toml").write_text(PROBLEM.format(labels=f'missing_labels = "{name}"'))
    (tmp_path / "bare.toml").write_text(PROBLEM.format(labels=""))
    return tmp_path


def test_check_says_what_predicts_missing_labels(folder, table):
    count = int(table["died"].isna().sum())
    found = run("check", "rows.csv", "--problem", "weigh.toml")
    assert f"{count} of 600 rows have no 'died'. These are not rows at random" in " ".join(found.output.split())
    assert "age predicts the recording of died, odds ratio" in " ".join(found.output.split())
    tested = json.loads(run("check", "rows.csv", "--problem", "weigh.toml", "--json").output)
    assert tested["holds"]
    assert tested["labels_missing"] == count
    assert tested["missingness"]["labels"]["by_chance"] is False
    assert tested["weighted"]


def test_check_warns_where_dropping_rows_is_not_chance(folder):
    found = " ".join(run("check", "rows.csv", "--problem", "drop.toml", code=1).output.split())
    assert "! " in found
    assert "age predicts the recording of died" in found
    assert 'Next: write missing_labels = "weigh"' in found


def test_missing_labels_need_a_decision(folder):
    found = run("check", "rows.csv", "--problem", "bare.toml", code=2)
    text = " ".join(found.output.split())
    assert 'missing_labels = "weigh" treats the label' in text
    assert 'missing_labels = "drop" leaves these rows out' in text


def test_the_draft_knows_labels_with_gaps(folder):
    run("init", "rows.csv", "--label", "died")
    text = (folder / "rows.toml").read_text()
    assert 'missing_labels = "weigh"' in text
    assert "label = true" not in text  # a label with gaps cannot be among what recording depends on, but in a graph
    assert "age -> R_died" in text
    run("check", "rows.csv", "--problem", "rows.toml", "--policy", "all")


def test_evaluate_reports_labels_and_weights(folder):
    arguments = ["--policy", "all", "--estimators", "ipw-semi,drl-semi", "--report", "out.html", "--no-sensitivity"]
    run("evaluate", "rows.csv", "--problem", "weigh.toml", *arguments)
    page = (folder / "out.html").read_text()
    assert "Rows have weights" in page
    assert "have no &#39;died&#39;" in page
    assert "age -&gt; R_died" in page or "age -> R_died" in page
