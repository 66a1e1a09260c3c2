"""Temporary files, cells of CSV, and text for the terminal."""

import os

import pandas as pd
import pytest

from afape.commands.screen import Screen
from afape.files.writing import atomic_write, escaped_cells, visible


def test_temporary_names_are_new_and_follow_no_link(tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.write_text("mine")
    names = set()
    for _ in range(5):
        with atomic_write(tmp_path / "file") as draft:
            names.add(draft.name)
            draft.write_text("new")
    assert len(names) == 5
    monkeypatch.setattr("secrets.token_hex", lambda n: "guessed")
    (tmp_path / ".file.guessed").symlink_to(other)
    with pytest.raises(FileExistsError), atomic_write(tmp_path / "file"):
        pass
    assert other.read_text() == "mine"
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_cells_that_look_like_formulas_are_escaped():
    frame = pd.DataFrame({"=a": ["=1+1", "+x", "-x", "@x", "-1.5e3", "+2", "x=1", None], "n": [-1.0] * 8})
    found = escaped_cells(frame)
    assert list(found.columns) == ["'=a", "n"]
    assert found["'=a"].tolist()[:7] == ["'=1+1", "'+x", "'-x", "'@x", "-1.5e3", "+2", "x=1"]
    assert found["n"].tolist() == [-1.0] * 8


def test_control_characters_have_no_effect_on_the_terminal(capsys):
    assert visible("a\x1b[31mb\x07\r\u202e é \n") == "a\\x1b[31mb\\x07\\r\\u202e é \n"
    screen = Screen()
    screen.say("name \x1b]0;title\x07")
    screen.note("name \x1b[2J")
    said = capsys.readouterr()
    assert "\x1b]" not in said.out
    assert "\x1b[2J" not in said.err
    assert "\\x1b[2J" in said.err
