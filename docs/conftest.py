"""Code of the pages runs in an empty folder, beside copies of the problem files that the page names; figures are not shown."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _folder(request, tmp_path, monkeypatch):
    page = Path(str(request.path))
    for file in page.parent.glob("*.toml"):
        shutil.copy(file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "Agg")
    yield
    if "matplotlib.pyplot" in __import__("sys").modules:
        __import__("matplotlib.pyplot").pyplot.close("all")
