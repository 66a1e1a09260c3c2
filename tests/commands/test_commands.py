"""The commands: from a table to a report, and messages on bad input."""

import hashlib
import json
import os
import pickle
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from typer.testing import CliRunner

import afape
from afape.commands.main import app

QUICK = ["--estimators", "blocking,cc,ipw-semi", "--no-sensitivity"]


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(a) for a in arguments])
    assert result.exit_code == code, f"{result.output}\n{result.exception!r}"
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Breast cancer data with induced gaps, and the problem file that `afape init` drafts for it."""
    path = tmp_path_factory.mktemp("records")
    frame = load_breast_cancer(as_frame=True).frame.rename(columns={"target": "benign"})
    rng = np.random.default_rng(0)
    z = (frame["mean radius"] - frame["mean radius"].mean()) / frame["mean radius"].std()
    p = 1 / (1 + np.exp(-(0.5 + 0.8 * z)))
    for end, share in (("error", p), ("worst", 0.3 + 0.6 * p)):
        columns = [c for c in frame.columns if end in c]
        frame.loc[rng.random(len(frame)) > share, columns] = np.nan
    frame.to_csv(path / "cells.csv", index=False)
    frame.to_parquet(path / "cells.parquet")
    before = os.getcwd()
    os.chdir(path)
    run("init", "cells.csv")
    yield path
    os.chdir(before)


@pytest.mark.slow
def test_a_newcomer_gets_a_report(folder):
    text = (folder / "cells.toml").read_text()
    assert text.count("EDIT") >= 5
    assert "error = " in text
    assert "worst = " in text
    found = run("check", "cells.csv", "--problem", "cells.toml", "--policy", "fixed:worst")
    assert "4 implications tested" in found.output
    arguments = ["--policy", "none", "--policy", "worst first=fixed:worst,error", "--report", "out.html"]
    found = run("compare", "cells.csv", "--problem", "cells.toml", *arguments)
    assert "Ranking by eff-semi" in found.output
    assert "Report: out.html" in found.output
    page = (folder / "out.html").read_text()
    for words in (
        "placeholders from `afape init`",
        "The classifier was trained here",
        "worst first",
        "afape compare cells.csv",
    ):
        assert words in page


def test_json_is_all_that_is_printed(folder):
    found = run("evaluate", "cells.parquet", "-p", "cells.toml", "--policy", "all", "--json", *QUICK)
    said = json.loads(found.stdout)
    lines = {(r["estimator"], r["target"]): r for r in said["evaluations"]["all"]["table"]}
    assert lines["ipw-semi", "acquisition"]["estimate"] == pytest.approx(2.0)
    assert said["draft"] is True
    said = json.loads(run("check", "cells.csv", "-p", "cells.toml", "--policy", "all", "--json").stdout)
    assert said["holds"] is True
    assert said["recorded"]["always_recorded"] == 1
    assert said["support"]["all"]["unsupported"] == 0


def test_a_report_leaves_out_what_was_not_asked_for(folder):
    arguments = ["-p", "cells.toml", "--policy", "none", "--report", "short.html", "--json", *QUICK]
    found = json.loads(run("evaluate", "cells.csv", *arguments).stdout)
    assert "There is no sensitivity analysis" in (folder / "short.html").read_text()
    assert "--no-sensitivity" in found["command"]


def test_tables_and_appendix_are_written_and_say_how_they_were_made(folder):
    pytest.importorskip("openpyxl")
    files = ["--table", "t.md", "--table", "t.tex", "--table", "t.xlsx", "--appendix", "a.md"]
    said = json.loads(
        run("evaluate", "cells.csv", "-p", "cells.toml", "--policy", "none", *files, "--json", *QUICK).stdout
    )
    assert said["tables"] == ["t.md", "t.tex", "t.xlsx"]
    assert (folder / "t.md").read_text().startswith("| policy | acquisition |")
    assert r"\toprule" in (folder / "t.tex").read_text()
    assert "cells.csv" in "".join(pd.read_excel(folder / "t.xlsx", sheet_name="provenance")["value"].astype(str))
    made = said["provenance"]
    assert made["table"] == {
        "name": "cells.csv",
        "sha256": hashlib.sha256((folder / "cells.csv").read_bytes()).hexdigest(),
    }
    assert made["problem_file"]["sha256"] == hashlib.sha256((folder / "cells.toml").read_bytes()).hexdigest()
    assert "--appendix a.md" in made["command"]
    appendix = (folder / "a.md").read_text()
    assert f"command: {made['command']}".replace("_", "\\_") in appendix
    result = run("evaluate", "cells.csv", "-p", "cells.toml", "--policy", "none", "--table", "t.csv", code=2)
    assert "--table 't.csv' must end in one of .md, .tex, .xlsx" in result.stderr


def test_the_same_command_gives_the_same_numbers(folder):
    arguments = ["evaluate", "cells.csv", "-p", "cells.toml", "--policy", "random:0.5", "--json", *QUICK]
    first, second = (json.loads(run(*arguments).stdout) for _ in range(2))
    assert first == second
    other = json.loads(run(*arguments, "--seed", "1").stdout)
    assert first["evaluations"] != other["evaluations"]


@pytest.mark.slow
def test_train_then_evaluate_on_rows_that_were_kept(folder):
    run("train", "tree", "cells.csv", "-p", "cells.toml")
    rest = pd.read_csv(folder / "tree.rest.csv")
    whole = pd.read_csv(folder / "cells.csv")
    assert len(rest) == round(0.4 * len(whole))
    agent = ["-p", "cells.toml", "--policy", "tree.afape", "--classifier", "tree.classifier.afape", *QUICK]
    found = run("evaluate", "tree.rest.csv", *agent)
    assert "Classifier, as given: tree.classifier.afape" in found.output
    assert "trained on" not in found.stderr
    found = run("evaluate", "cells.csv", *agent)
    assert re.search(r"Warning: .*trained on", found.stderr)  # its own rows are among these


def test_policies_of_every_kind(folder):
    (folder / "rules.txt").write_text("if 'mean radius' > 14: worst\n")
    (folder / "mine.py").write_text(
        "import afape\nagent = afape.AcquireAll()\nclass Judge:\n    def predict(self, values, acquired):\n"
        "        return (values[:, 0] < 15).astype(int)\njudge = Judge()\n"
    )
    arguments = [a for p in ("rules.txt", "guideline:worst", "mine:agent", "random:0.2") for a in ("--policy", p)]
    found = run("compare", "cells.csv", "-p", "cells.toml", *arguments, "--classifier", "mine:judge", "--json", *QUICK)
    assert list(json.loads(found.stdout)["evaluations"]) == ["rules", "guideline:worst", "mine:agent", "random:0.2"]


def test_a_graph_on_the_command_line(folder):
    text = (folder / "cells.toml").read_text().replace('given = ["always_recorded"]', "")
    graph = 'assumption = "MNAR"\ngraph = "always_recorded -> R_error; always_recorded, error -> R_worst"'
    (folder / "graph.toml").write_text(text.replace('assumption = "MAR"', graph, 1))
    arguments = ["--policy", "fixed:worst", "--estimators", "blocking,ipw-semi-miss", "--report", "graph.html"]
    run("evaluate", "cells.csv", "-p", "graph.toml", *arguments)
    assert "recording depends only on what the graph below shows" in (folder / "graph.html").read_text()


@pytest.mark.slow
def test_a_newcomer_with_census_data(tmp_path, monkeypatch):
    """A real table, from the folder of AFAPE_DATA."""
    source = Path(os.environ.get("AFAPE_DATA", "")) / "income.csv"
    if not os.environ.get("AFAPE_DATA") or not source.exists():
        pytest.skip("AFAPE_DATA names no folder with income.csv")
    monkeypatch.chdir(tmp_path)
    with source.open() as lines:
        Path("income.csv").write_text("".join(line for _, line in zip(range(4001), lines, strict=False)))
    run("init", "income.csv")
    assert 'blanks = ["?"]' in Path("income.toml").read_text()
    run(
        "check", "income.csv", "--problem", "income.toml", "--policy", "all", code=1
    )  # the label predicts what is missing
    arguments = ["--policy", "none", "--policy", "all", "--estimators", "blocking,drl-semi", "--report", "out.html"]
    found = run("compare", "income.csv", "--problem", "income.toml", *arguments)
    assert "Report: out.html" in found.output
    assert "native-country" in Path("out.html").read_text()


def test_large_data_leave_the_slow_estimator_out(folder, monkeypatch):
    monkeypatch.setattr("afape.commands.evaluate._MANY_VALUES", 100)
    found = run("evaluate", "cells.csv", "-p", "cells.toml", "--policy", "none", "--no-sensitivity")
    assert "eff-semi was left out" in found.output
    assert "drl-semi" in found.output


BAD = {
    "mistyped group": (["--policy", "fixed:wrst"], "there is no group 'wrst'. Did you mean 'worst'?"),
    "no such policy": (["--policy", "greedy"], "must be built-in"),
    "no probability": (["--policy", "random:much"], "must give a probability"),
    "impossible probability": (["--policy", "random:2"], "must lie in [0, 1]"),
    "no module": (
        ["--policy", "nowhere:agent"],
        "module 'nowhere', but there is no such module. The option also takes none, all, random:P",
    ),
    "broken module": (["--policy", "broken:agent"], "cannot be imported: ZeroDivisionError"),
    "no object": (["--policy", "fine:agnet"], "'fine' has no 'agnet'. Did you mean 'agent'?"),
    "no policy in it": (["--policy", "fine:number"], "must have a method probabilities"),
    "pickle": (["--policy", "agent.pkl"], "is a pickle, which can run any code"),
    "pickle by another name": (["--policy", "agent.afape"], "is a pickle, which can run any code"),
    "rules with an error": (["--policy", "bad.txt"], "bad.txt: Guideline, line 1, column 9"),
    "no file": (["--policy", "gone.afape"], "There is no file"),
    "no classifier": (["--policy", "all", "--classifier", "forrest"], "Did you mean 'forest'?"),
    "classifier without predict": (["--policy", "all", "--classifier", "fine:agent"], "which has none"),
    "estimator": (["--policy", "all", "--estimators", "ipw"], "must be among"),
    "folder that is not there": (["--policy", "all", "--report", "no/such/out.html"], "there is no"),
    "folder as report": (["--policy", "all", "--report", "folder.html"], "is a folder"),
    "ending of the report": (["--policy", "all", "--report", "out.pdf"], "must end in '.html'"),
}


@pytest.mark.parametrize(("arguments", "message"), BAD.values(), ids=BAD)
def test_bad_input_ends_with_a_message_and_no_traceback(folder, arguments, message):
    (folder / "broken.py").write_text("1 / 0\n")
    (folder / "fine.py").write_text("import afape\nagent = afape.AcquireAll()\nnumber = 3\n")
    (folder / "bad.txt").write_text("if age >: worst\n")
    (folder / "folder.html").mkdir(exist_ok=True)
    for name in ("agent.pkl", "agent.afape"):
        (folder / name).write_bytes(pickle.dumps(afape.AcquireAll()))
    found = run("evaluate", "cells.csv", "-p", "cells.toml", *QUICK, *arguments, code=2)
    said = " ".join(found.stderr.split())
    assert said.startswith("Error: ")
    assert message in said
    assert "Traceback" not in found.output


def test_a_pickle_is_loaded_if_it_is_allowed(folder):
    (folder / "agent.pkl").write_bytes(pickle.dumps(afape.AcquireAll()))
    run("evaluate", "cells.csv", "-p", "cells.toml", "--policy", "agent.pkl", "--allow-pickle", *QUICK)


def test_a_report_that_cannot_be_written_is_refused_before_the_table_is_read(folder):
    found = run(
        "evaluate", "nowhere.csv", "-p", "cells.toml", "--policy", "all", "--report", "no/such/out.html", code=2
    )
    assert "--report must lie in a folder that exists" in found.stderr


def test_missing_packages_are_named_before_the_work(folder, monkeypatch):
    monkeypatch.setattr("afape.report.page.find_spec", lambda name: None)
    found = run("evaluate", "cells.csv", "-p", "cells.toml", "--policy", "all", "--report", "x.html", code=2)
    assert "pip install 'afape[report]'" in found.stderr


def test_data_and_problem_that_do_not_fit(folder):
    for arguments, message in [
        (["cells.toml", "-p", "cells.csv"], "exchange them"),
        (["nowhere.csv", "-p", "cells.toml"], "There is no file"),
        (["cells.csv", "-p", "nowhere.toml"], "afape init"),
    ]:
        assert message in run("check", *arguments, code=2).stderr
    text = (folder / "cells.toml").read_text()
    (folder / "odd.toml").write_text(text.replace('"mean texture"', '"mean textur"'))
    said = run("check", "cells.csv", "-p", "odd.toml", code=2).stderr
    assert re.search(
        r"odd.toml, line \d+: the data have no column 'mean textur'. Did you mean 'mean texture'",
        " ".join(said.split()),
    )


def test_check_ends_with_1_if_records_contradict_the_assumption(folder):
    text = (folder / "cells.toml").read_text()
    careless = text.replace('assumption = "MAR"', 'assumption = "MCAR"').replace('given = ["always_recorded"]', "")
    (folder / "careless.toml").write_text(careless)
    assert "rejected at level" in run("check", "cells.csv", "-p", "careless.toml", code=1).output


def test_init_does_not_overwrite(folder):
    said = run("init", "cells.csv", code=2).stderr
    assert "--force" in said
    run("init", "cells.csv", "--out", "again.toml")
    run("init", "cells.csv", "--out", "again.toml", "--force")


def test_errors_in_the_users_policy_name_the_users_line(folder):
    (folder / "wrong.py").write_text(
        "class Agent:\n    def probabilities(self, values, acquired):\n        raise ValueError('mine')\nagent = Agent()\n"
    )
    said = run("evaluate", "cells.csv", "-p", "cells.toml", "--policy", "wrong:agent", *QUICK, code=2).stderr
    assert "mine" in said
    assert re.search(r"wrong.py, line 3", " ".join(said.split()))


COMMAND = [sys.executable, "-c", "from afape.commands.main import main; main()"]


@pytest.fixture(scope="module")
def many(folder):
    """A hundred thousand rows."""
    rng = np.random.default_rng(0)
    n = 100_000
    frame = pd.DataFrame(rng.normal(size=(n, 3)), columns=["a", "b", "c"])
    frame["y"] = (frame.sum(axis=1) > 0).astype(int)
    frame.loc[rng.random(n) < 0.4, "b"] = np.nan
    frame.loc[rng.random(n) < 0.4, "c"] = np.nan
    frame.round(3).to_csv(folder / "many.csv", index=False)
    run("init", "many.csv", "--label", "y")
    return folder


@pytest.mark.slow
def test_progress_shows_within_two_seconds_and_ctrl_c_leaves_nothing(many):
    before = sorted(os.listdir(many))
    ours, theirs = pty.openpty()
    arguments = ["evaluate", "many.csv", "-p", "many.toml", "--policy", "random:0.5", "--report", "many.html"]
    start = time.monotonic()
    process = subprocess.Popen([*COMMAND, *arguments], cwd=many, stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    try:
        shown = b""
        while b"loading" not in shown and b"reading" not in shown:
            shown += os.read(ours, 4096)
        assert time.monotonic() - start < 2
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        said = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the end, as Linux tells it
                break
            if not piece:
                break
            said += piece
        assert process.wait(timeout=60) == 130
    finally:
        process.kill()
        os.close(ours)
    assert b"Interrupted; nothing was written." in said
    assert b"Traceback" not in said
    assert sorted(os.listdir(many)) == before


def test_without_a_terminal_nothing_moves(folder):
    arguments = ["evaluate", "cells.csv", "-p", "cells.toml", "--policy", "none", *QUICK]
    done = subprocess.run([*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=True)
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stderr
