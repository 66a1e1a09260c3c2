"""A benchmark on one's own table: outputs, resuming, determinism, refusals."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from small import TOML, write_small
from typer.testing import CliRunner

from afape import save
from afape.agents import RandomSubset
from afape.benchmark.description import read_description
from afape.benchmark.draws import OtherStudyError
from afape.benchmark.manifest import OtherExperimentError, start_manifest
from afape.benchmark.runner import Settings, run_experiment
from afape.benchmark.section import DescriptionError
from afape.commands.main import app
from afape.warnings import AfapeWarning

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")


def run(folder, file, **settings):
    return run_experiment(read_description(file), folder, Settings(**settings))


def tables(folder):
    return [
        (folder / name).read_bytes() for name in ("results.parquet", "results.csv", "summary.csv", "efficiency.csv")
    ]


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    base = tmp_path_factory.mktemp("own")
    file = write_small(base)
    return file, base / "out", run(base / "out", file)


def test_everything_is_written(done):
    _, folder, finished = done
    for name in ("results.parquet", "results.csv", "summary.csv", "efficiency.csv", "README.md", "manifest.json"):
        assert (folder / name).stat().st_size > 200
    assert (folder / "small.png").read_bytes()[:4] == b"\x89PNG"
    assert "<svg" in (folder / "small.svg").read_text()
    page = (folder / "README.md").read_text()
    assert "![A small one](small.png)\n\nIt is small. It is a test." in page
    assert "times fewer rows" in page
    manifest = json.loads((folder / "manifest.json").read_text())
    assert (manifest["status"], manifest["experiment"], manifest["seed"]) == ("done", "own", 0)
    assert "scikit-learn" in manifest["versions"]
    parquet, csv = (
        pd.read_parquet(folder / "results.parquet"),
        pd.read_csv(folder / "results.csv", keep_default_na=True),
    )
    pd.testing.assert_frame_equal(parquet.drop(columns="support"), csv.drop(columns="support"), check_dtype=False)
    assert (
        len(finished.results) == 2 * 5 * 2 * (1 + 5) * 3
    )  # sizes, data sets, agents, estimators and complete, targets


def test_acquiring_everything_is_known_from_complete_rows(done):
    """The acquisition cost of an agent that always takes all is 3, whatever was recorded, for every sound estimator."""
    _, _, finished = done
    part = finished.results[(finished.results["agent"] == "everything") & (finished.results["target"] == "acquisition")]
    sound = part[part["estimator"].isin(["complete", "ipw-miss", "ipw-semi-gt"])]
    assert sound["estimate"].round(9).eq(3.0).all()
    assert part["truth"].eq(3.0).all()


def test_a_second_run_and_other_processes_give_the_same_bits(done, tmp_path):
    file, folder, _ = done
    run(tmp_path / "again", file)
    run(tmp_path / "two", file, jobs=2)
    assert tables(tmp_path / "again") == tables(folder)
    assert tables(tmp_path / "two") == tables(folder)


def test_another_seed_gives_other_numbers(done, tmp_path):
    file, _folder, finished = done
    other = run(tmp_path / "seed", file, seed=1)
    assert not other.results["estimate"].equals(finished.results["estimate"])


@pytest.mark.slow
def test_a_killed_run_continues(done, tmp_path):
    file, folder, _ = done
    out = tmp_path / "killed"
    code = "from afape.commands.main import main; main()"
    command = [sys.executable, "-c", code, "benchmark", str(file), "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len(list(out.glob("draws-*/*.csv"))) < 3 and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    written = {f: f.stat().st_mtime_ns for f in out.glob("draws-*/*.csv")}
    assert 3 <= len(written) < 10
    assert not (out / "results.parquet").exists()
    assert json.loads((out / "manifest.json").read_text())["status"] == "running"
    run(out, file)
    assert {f: f.stat().st_mtime_ns for f in written} == written
    assert tables(out) == tables(folder)


def test_a_longer_run_keeps_what_is_there(done, tmp_path):
    file, folder, _finished = done
    out = tmp_path / "longer"
    short = run_experiment(read_description(file).reduced(3), out)
    assert short.results["draw"].nunique() == 3
    run(out, file)
    assert tables(out) == tables(folder)


def test_a_folder_of_another_experiment_is_refused(done):
    file, folder, _ = done
    description = read_description(file)
    settings = Settings()
    with pytest.raises(OtherExperimentError, match="experiment 'own' instead of 'other'"):
        run_experiment(replace(description, name="other"), folder, settings)
    with pytest.raises(OtherExperimentError, match="seed 0 instead of 5"):
        run_experiment(description, folder, replace(settings, seed=5))
    with pytest.raises(OtherExperimentError, match="quick False instead of True"):
        run_experiment(read_description(file, quick=True), folder, settings)


def test_a_finished_folder_is_refused_with_another_table(done, tmp_path):
    """The description is the same file; only the contents of the table differ, by one digit."""
    file, folder, _ = done
    table = pd.read_csv(file.parent / "own.csv")
    table.loc[3, "hgb"] += 1e-9
    table.to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(OtherExperimentError, match=r"checksum of the table '\w+' instead of .*Choose another folder"):
        run(folder, file, data=tmp_path / "other.csv")
    shutil.copy(file.parent / "own.csv", tmp_path / "copy.csv")
    run(folder, file, data=tmp_path / "copy.csv")


def test_intermediate_results_are_refused_with_another_table_also_without_the_manifest(done, tmp_path):
    file, folder, _ = done
    shutil.copytree(folder, tmp_path / "out")
    (tmp_path / "out" / "manifest.json").unlink()
    table = pd.read_csv(file.parent / "own.csv")
    table.sample(frac=1.0, random_state=0).to_csv(tmp_path / "other.csv", index=False)
    with pytest.raises(OtherStudyError, match="agents and true costs"):
        run(tmp_path / "out", file, data=tmp_path / "other.csv")


def test_a_folder_is_refused_with_another_saved_agent_of_the_same_name(tmp_path):
    text = TOML.replace('half = "random:0.5"', 'half = "file:agent.afape"').replace("draws = 5", "draws = 2")
    file = write_small(tmp_path, text.replace("rows = [120, 240]", "rows = [120]"))
    problem = read_description(file).make_problem()
    save(RandomSubset(0.5), tmp_path / "agent.afape", problem)
    run(tmp_path / "out", file)
    save(RandomSubset(0.5), tmp_path / "agent.afape", problem)
    run(tmp_path / "out", file)
    save(RandomSubset(0.4), tmp_path / "agent.afape", problem)
    with pytest.raises(OtherExperimentError, match="checksums of saved agents"):
        run(tmp_path / "out", file)


def test_the_command_refuses_a_folder_of_another_experiment(done):
    _, folder, _ = done
    pytest.importorskip("jax")  # otherwise it asks for that first
    result = CliRunner().invoke(app, ["reproduce", "synthetic-mar", "--quick", "--out", str(folder)])
    assert result.exit_code == 2
    assert "holds results of another experiment" in result.output
    assert "Traceback" not in result.output


def test_a_damaged_manifest_is_reported_and_written_again(tmp_path):
    own = {"experiment": "small", "seed": 0}
    (tmp_path / "manifest.json").write_text("{")
    with pytest.warns(AfapeWarning, match="is damaged"):
        assert start_manifest(tmp_path, own, "")["status"] == "running"
    assert start_manifest(tmp_path, own, "")["status"] == "running"


def test_the_table_must_be_complete(tmp_path):
    file = write_small(tmp_path)
    table = pd.read_csv(tmp_path / "own.csv")
    table.loc[:9, "lactate"] = float("nan")
    table.to_csv(tmp_path / "own.csv", index=False)
    with pytest.raises(DescriptionError, match=r"must be complete, .* but 10 of 1500 rows have gaps"):
        run(tmp_path / "out", file)


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        ('half = "random:0.5"', 'half = "rnadom:0.5"', "An agent must be 'random:0.1'"),
        ('half = "random:0.5"', 'half = "random:2"', r"'random:2' is not valid.*\[0, 1\]"),
        ('half = "random:0.5"', 'half = "fixed:cbc,xray"', "xray"),
        ('weights = { age = 1.0 }\nscales = { age = "standard" }', "weights = { hgbb = 1.0 }", "'hgbb' is not one"),
    ],
)
def test_agents_and_columns_are_checked_before_work(tmp_path, old, new, match):
    assert old in TOML
    with pytest.raises(ValueError, match=match):
        run(tmp_path / "out", write_small(tmp_path, TOML.replace(old, new)))


def test_the_command_finds_the_table_beside_the_description(tmp_path, monkeypatch):
    file = write_small(tmp_path / "there")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["benchmark", str(file), "--quick"])
    assert result.exit_code == 0, result.output
    assert "ipw-semi" in result.output
    assert (tmp_path / "own" / "README.md").read_text().count("quick run") == 1
    (tmp_path / "there" / "own.csv").unlink()
    result = CliRunner().invoke(app, ["benchmark", str(file), "--quick", "--out", str(tmp_path / "new")])
    assert result.exit_code == 2
    assert "does not exist" in result.output
    result = CliRunner().invoke(app, ["benchmark", str(tmp_path / "none.toml")])
    assert result.exit_code == 2
    assert "There is no file" in result.output


def test_the_guide_describes_an_experiment_that_runs(tmp_path):
    guide = (Path(__file__).parents[2] / "docs" / "guides" / "benchmark.md").read_text()
    (text,) = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    file = write_small(tmp_path, text)
    result = CliRunner().invoke(app, ["benchmark", str(file), "--quick", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert (tmp_path / "out" / "sizes.png").exists()


def test_a_run_as_the_papers(tmp_path):
    """Each row once, one split, a frozen bootstrap: rows without gaps cost exactly J, and every estimator has an error."""
    text = TOML.replace(
        "draws = 5\n", 'draws = 2\nreplace = false\nsplit = 0.5\nfrozen = 5\nacquisition_weight = "after"\n'
    )
    text = text.replace("rows = [120, 240]", "rows = [1050]").replace('"ipw-semi-gt"]', '"ipw-semi-gt", "dm-semi"]')
    file = write_small(tmp_path, text.replace('title = "A small one"', 'targets = ["misclassification", "total"]'))
    found = run(tmp_path / "out", file).results
    whole = found[found["estimator"] == "complete"]
    assert np.allclose(whole["estimate"], whole["truth"])
    assert found["std_error"].notna().all()
    assert (tmp_path / "out" / "small.png").exists()
    assert (tmp_path / "out" / "small-total.png").exists()
    page = (tmp_path / "out" / "README.md").read_text()
    assert "*small*: every row is drawn at most once." in page
    assert "### Misclassification cost" in page


def test_more_rows_than_there_are_cannot_be_drawn_once(tmp_path):
    text = TOML.replace("draws = 5", "draws = 5\nreplace = false").replace("rows = [120, 240]", "rows = [1051]")
    with pytest.raises(DescriptionError, match="draws 1051 rows without replacement, but only 1050 rows are left"):
        run(tmp_path / "out", write_small(tmp_path, text))
