"""The page of mistakes: each one is made, and gets the message that the page shows."""

import os
import pickle
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from afape.commands.main import app

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "mistakes.md"
ENTRY = re.compile(r"^### (.+?)\n.*?```(console|ini|python)\n(.*?)```\n\n```text\n(.*?)```", re.MULTILINE | re.DOTALL)
CHECK = "afape check records.csv --problem records.toml"


def entries():
    """Title, kind of block, mistake and message of every entry."""
    return ENTRY.findall(PAGE.read_text(encoding="utf-8"))


def problem():
    """The problem file at the top of the page."""
    return re.search(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL).group(1)


def frame():
    rng = np.random.default_rng(0)
    hgb, wbc, lactate = rng.normal(size=(3, 400)).round(2)
    table = pd.DataFrame({"age": rng.normal(60, 10, 400).round(), "hgb": hgb, "wbc": wbc, "lactate": lactate})
    table["died"] = (wbc + lactate > 0).astype(int)
    table.loc[rng.random(400) < 0.4, ["hgb", "wbc"]] = np.nan
    table.loc[rng.random(400) < 0.4, "lactate"] = np.nan
    return table


def changed(text, lines):
    """The problem file with these lines in place of those with the same keys; new keys come first."""
    for key in dict.fromkeys(line.split(" = ")[0] for line in lines.splitlines()):
        mine = "".join(f"{line}\n" for line in lines.splitlines() if line.split(" = ")[0] == key)
        pattern = rf"(?m)^{re.escape(key)} = .*\n"
        text = re.sub(pattern, lambda _, mine=mine: mine, text) if re.search(pattern, text) else mine + text
    return text


def outcome(kind, mistake):
    """Make the mistake in the current folder and return what the command says."""
    frame().to_csv("records.csv", index=False)
    frame().to_csv("records.xlsx", index=False)
    Path("records.toml").write_text(problem(), encoding="utf-8")
    Path("agent.pkl").write_bytes(pickle.dumps("an agent"))
    command = mistake.removeprefix("$ ") if kind == "console" else CHECK
    if kind == "ini":
        Path("records.toml").write_text(changed(problem(), mistake), encoding="utf-8")
    if kind == "python":
        names = {"frame": frame(), "np": np}
        exec(mistake, names)
        names["frame"].to_csv("records.csv", index=False)
    return CliRunner().invoke(app, shlex.split(command)[1:]).output


def words(text):
    return " ".join(text.split())


def test_the_page_has_at_least_25_mistakes():
    titles = [title for title, *_ in entries()]
    assert len(titles) == len(set(titles)) == len(re.findall("^### ", PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert len(titles) >= 25


@pytest.mark.parametrize(("kind", "mistake", "message"), [e[1:] for e in entries()], ids=[e[0] for e in entries()])
def test_a_mistake_gets_its_message(tmp_path, monkeypatch, kind, mistake, message):
    monkeypatch.chdir(tmp_path)
    said = words(outcome(kind, mistake)).replace(os.fspath(tmp_path), "...")
    assert "Traceback" not in said
    place = 0
    for part in words(message).split("..."):  # three dots stand for any text
        place = said.find(part.strip(), place)
        assert place >= 0, said
