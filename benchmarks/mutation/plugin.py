"""Plugins of pytest: which functions a test calls, and a run of chosen tests in a chosen order."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

__all__ = ["Chosen", "Recorder"]


class Recorder:
    """Records the functions of some folders that each test calls, by file and name, and how long the test takes."""

    def __init__(self, root: Path, folders: Sequence[str]):
        self.root, self.folders = root, tuple(f"{root / folder}/" for folder in folders)
        self.tests: dict[str, dict] = {}
        self.called: set[tuple[str, str]] = set()

    def _trace(self, frame, event, _):
        code = frame.f_code
        if code.co_filename.startswith(self.folders):
            self.called.add((code.co_filename, code.co_qualname.replace(".<locals>", "")))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Trace set-up and test."""
        self.called, began = set(), time.process_time()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            calls: dict[str, list[str]] = {}
            for file, name in sorted(self.called):
                calls.setdefault(str(Path(file).relative_to(self.root)), []).append(name)
            test = self.tests.setdefault(item.nodeid, {"passed": False})
            test.update(seconds=time.process_time() - began, calls=calls)

    def pytest_runtest_logreport(self, report):
        """Keep tests that pass."""
        if report.when == "call":
            self.tests.setdefault(report.nodeid, {})["passed"] = report.passed


class Chosen:
    """Runs these tests in this order, and remembers the first that fails."""

    def __init__(self, tests: list[str]):
        self.place = {test: k for k, test in enumerate(tests)}
        self.failed = ""

    def pytest_collection_modifyitems(self, items):
        """Leave out the others."""
        items[:] = sorted((i for i in items if i.nodeid in self.place), key=lambda item: self.place[item.nodeid])

    def pytest_runtest_logreport(self, report):
        """Remember the first failure."""
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report):
        """A module that cannot be imported fails too."""
        if report.failed and not self.failed:
            self.failed = f"{report.nodeid} (import)"
