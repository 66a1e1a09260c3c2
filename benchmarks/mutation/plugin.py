"""Plugins of pytest: which lines a test executes, and a run of chosen tests in a chosen order."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import pytest

__all__ = ["Chosen", "Recorder"]


class Recorder:
    """Records the lines of some folders that each test executes, and how long the test takes."""

    def __init__(self, folders: list[Path]):
        self.folders = tuple(str(folder) + "/" for folder in folders)
        self.tests: dict[str, dict] = {}
        self.lines: set[tuple[str, int]] = set()

    def _trace(self, frame, event, _):
        file = frame.f_code.co_filename
        if not file.startswith(self.folders):
            return None
        self.lines.add((file, frame.f_lineno))
        return self._line

    def _line(self, frame, event, _):
        self.lines.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item):
        """Trace set-up and test."""
        self.lines, began = set(), time.perf_counter()
        threading.settrace(self._trace)
        sys.settrace(self._trace)
        try:
            return (yield)
        finally:
            sys.settrace(None)
            threading.settrace(None)
            lines: dict[str, list[int]] = {}
            for file, line in sorted(self.lines):
                lines.setdefault(file, []).append(line)
            test = self.tests.setdefault(item.nodeid, {"passed": False})
            test.update(seconds=time.perf_counter() - began, lines=lines)

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
