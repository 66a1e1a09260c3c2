"""Commands on a folder, or on a pattern of files: blocks in place of a table in memory."""

import json

import block_files
import pytest
from typer.testing import CliRunner

from afape.commands.main import app

PROBLEM = """
label = "y"
misclassification_cost = 10.0
classes = { 0 = "well", 1 = "ill" }

[groups]
a = { columns = ["a", "kind"] }
b = { columns = ["b"], price = 1.0 }
c = { columns = ["c"], price = 2.0 }

[missingness]
assumption = "MAR"
given = ["a"]
"""


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    block_files.written(block_files.frame(1500), folder / "csv", kind="csv")
    block_files.written(block_files.frame(1500), folder / "parquet")
    (folder / "problem.toml").write_text(PROBLEM)
    return folder


def compared(records, data, *more):
    asked = ("--policy", "none", "--policy", "all", "--classifier", "logistic", "--estimators", "ipw-semi,drl-semi")
    done = run("compare", data, "--problem", records / "problem.toml", *asked, "--block-rows", "300", "--json", *more)
    return json.loads(done.stdout)


def test_a_folder_is_evaluated_in_blocks_and_reported(records, tmp_path):
    found = compared(records, records / "csv", "--report", tmp_path / "page.html")
    assert found["evaluations"]["all"]["assumption"][0].startswith("The rows were dealt at random to 4 blocks")
    assert "in 4 blocks. The sensitivity to unmeasured reasons is left out" in found["classifier"]
    assert {line["policy"] for line in found["ranking"]} == {"none", "all"}
    assert "--block-rows 300" in found["command"]
    page = (tmp_path / "page.html").read_text()
    assert "“ill” predicted where “well” is true" in page


def test_formats_give_the_same_numbers(records):
    """Blocks are dealt by the names of files, which differ, so compare what has the same names."""
    csv = compared(records, records / "csv")
    pattern = compared(records, f"{records}/csv/part*.csv")
    assert csv["evaluations"]["all"]["table"] == pattern["evaluations"]["all"]["table"]
    assert compared(records, records / "parquet")["evaluations"]["all"]["n_rows"] > 900


def test_check_takes_a_folder(records):
    found = json.loads(
        run("check", records / "csv", "--problem", records / "problem.toml", "--policy", "all", "--json").stdout
    )
    assert found["rows"] == 1500
    assert found["recorded"]["a"] == 1.0
    assert found["holds"]


def test_options_of_blocks_are_refused_for_one_table(records):
    done = run("compare", records / "csv" / "part0.csv", "--problem", records / "problem.toml", "--policy", "all",
               "--block-rows", "9", code=2)  # fmt: skip
    assert "--block-rows and --scratch are for a folder or a pattern of files" in done.output


def test_names_of_labels_must_cover_the_files(records, tmp_path):
    (tmp_path / "problem.toml").write_text(PROBLEM.replace('{ 0 = "well", 1 = "ill" }', '{ 0 = "well", 2 = "ill" }'))
    done = run(
        "compare",
        records / "csv",
        "--problem",
        tmp_path / "problem.toml",
        "--policy",
        "all",
        "--block-rows",
        "300",
        code=2,
    )
    assert "'classes' must name every label, but lacks '1'" in done.output
