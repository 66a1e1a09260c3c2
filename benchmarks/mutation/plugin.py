"""A plugin of pytest that changes functions, one change at a time, and runs the tests that call them.

Tests are collected once. Each change gets a process of its own, a copy of this one (`os.fork`), in which the function has the
changed code; nothing is imported or collected again, so a change costs the time of the tests that notice it.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, FunctionType

import pytest

from .mutants import Mutant, changed_tree, mutants

__all__ = ["Server"]


class Server:
    """Runs the changes of some rooms against the collected tests.

    Parameters
    ----------
    root : Path
        Folder of the package.
    rooms : list of str
        Folders in it whose functions are changed.
    wanted : callable
        ``wanted(changes)`` chooses from all changes, by room.
    tell : callable
        ``tell(change, fate, test, seconds)``, called after each.
    kept : Path
        File that keeps which test calls which functions.
    patience : float
        Seconds of tests that a change may survive.
    ends : float
        Time (`time.monotonic`) at which to stop.
    """

    def __init__(
        self, root: Path, rooms: list[str], wanted: Callable, tell: Callable, kept: Path, patience: float, ends: float
    ):
        self.root, self.rooms, self.wanted, self.tell, self.kept, self.ends = root, rooms, wanted, tell, kept, ends
        self.patience = patience
        self.folders = tuple(f"{root / room}/" for room in rooms)
        self.called: set[str] = set()
        self.failed = ""

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Record what tests call, then run the changes."""
        calls = self._recorded(session.items)
        if calls is None:
            print("not all tests are recorded yet: the same command continues", flush=True)
            return True
        functions = live_functions(self.folders)
        found = {room: list(self._changes(room, functions)) for room in self.rooms}
        items = {item.nodeid: item for item in session.items}
        for mutant, codes in self.wanted(found):
            began = time.monotonic()
            if began > self.ends:
                print("some changes are left: the same command continues", flush=True)
                break
            names = chosen(f"{mutant.file}:{mutant.scope}", calls, self.patience)
            fate, test = self._fate(codes, [items[n] for n in names], sum(calls[n]["seconds"] for n in names))
            self.tell(mutant, fate, test, time.monotonic() - began)
        return True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Remember the first failure."""
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def _changes(self, room: str, functions: dict) -> Iterator[tuple[Mutant, list]]:
        """Yield each change inside a function, with the functions and their changed code."""
        for file in sorted((self.root / room).rglob("*.py")):
            source, name = file.read_text(), str(file.relative_to(self.root))
            for mutant in mutants(source, name):
                owner = next((f for f in prefixes(mutant.scope) if (str(file), f) in functions), None)
                if owner is not None and not mutant.outside:
                    yield mutant, [source, str(file), mutant.number, owner, functions[str(file), owner]]

    def _recorded(self, items: list[pytest.Item]) -> dict | None:
        """Return seconds and called functions of the tests that pass; kept as long as neither code nor tests change."""
        kept = json.loads(self.kept.read_text()) if self.kept.exists() else {}
        code = b"".join(path.read_bytes() for path in sorted(self.root.rglob("*.py")))
        paths = {item.path for item in items}
        hashes = {path: hashlib.sha256(code + path.read_bytes()).hexdigest()[:12] for path in paths}
        left = [item for item in items if f"{item.nodeid} {hashes[item.path]}" not in kept]
        for k, item in enumerate(left):
            if time.monotonic() > self.ends:
                break
            self.called, self.failed, began = set(), "", time.process_time()
            sys.settrace(self._trace)
            try:
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=left[k + 1] if k + 1 < len(left) else None)
            finally:
                sys.settrace(None)
            seconds = time.process_time() - began
            kept[f"{item.nodeid} {hashes[item.path]}"] = {
                "seconds": seconds, "calls": sorted(self.called), "passed": not self.failed,
            }  # fmt: skip
        self.kept.parent.mkdir(parents=True, exist_ok=True)
        self.kept.write_text(json.dumps(kept))
        found = {item.nodeid: kept.get(f"{item.nodeid} {hashes[item.path]}") for item in items}
        if None in found.values():
            return None
        print(f"{len(found)} tests, {sum(t['seconds'] for t in found.values()):.0f} s", flush=True)
        return {name: test for name, test in found.items() if test["passed"]}

    def _trace(self, frame, event, _):
        code = frame.f_code
        if code.co_filename.startswith(self.folders):
            file = Path(code.co_filename).relative_to(self.root)
            self.called.add(f"{file}:{code.co_qualname.replace('.<locals>', '')}")

    def _fate(self, codes: list, items: list[pytest.Item], seconds: float) -> tuple[str, str]:
        """Return "killed", "timeout", "survived" or "not called", and the test that failed."""
        if not items:
            return "not called", ""
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            self._run(codes, items, writing)
        os.close(writing)
        ends = time.monotonic() + 60 + 20 * seconds
        while os.waitpid(child, os.WNOHANG)[0] == 0:
            if time.monotonic() > ends:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                os.close(reading)
                return "timeout", ""
            time.sleep(0.01)
        with os.fdopen(reading) as opened:
            answer = opened.read()
        return ("survived", "") if answer == "survived" else ("killed", answer or "the process ended")

    def _run(self, codes: list, items: list[pytest.Item], writing: int) -> None:
        """Run the tests with the changed code until one fails, tell the parent, and end the process."""
        os.setsid()
        with Path(os.devnull).open("w") as nothing:
            os.dup2(nothing.fileno(), 1)
            os.dup2(nothing.fileno(), 2)
        answer = "survived"
        try:
            change(*codes)
            self.failed = ""
            for k, item in enumerate(items):
                item.config.hook.pytest_runtest_protocol(
                    item=item, nextitem=items[k + 1] if k + 1 < len(items) else None
                )
                if self.failed:
                    answer = self.failed
                    break
        except BaseException as error:
            answer = f"{type(error).__name__} outside tests"
        finally:
            os.write(writing, answer.encode())
            os._exit(0)


def live_functions(folders: tuple[str, ...]) -> dict[tuple[str, str], list[FunctionType]]:
    """Return the functions of some folders by file and name; not those that other functions make when they run."""
    found: dict[tuple[str, str], list[FunctionType]] = {}
    for thing in gc.get_objects():
        code = thing.__code__ if isinstance(thing, FunctionType) else None
        if code is not None and code.co_filename.startswith(folders) and "<" not in code.co_qualname:
            found.setdefault((code.co_filename, code.co_qualname), []).append(thing)
    return found


def change(source: str, file: str, number: int, owner: str, functions: list[FunctionType]) -> None:
    """Give functions the code that they have after a change of their module."""
    new = {
        c.co_firstlineno: c
        for c in codes_in(compile(changed_tree(source, number), file, "exec"))
        if c.co_qualname == owner
    }
    for function in functions:
        function.__code__ = new[function.__code__.co_firstlineno]


def codes_in(code: CodeType) -> Iterator[CodeType]:
    """Yield the code of every function of a module."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from codes_in(constant)


def prefixes(scope: str) -> Iterator[str]:
    """Yield the name of a function, and of those around it."""
    parts = scope.split(".")
    for k in range(len(parts), 0, -1):
        yield ".".join(parts[:k])


def chosen(name: str, calls: dict, patience: float) -> list[str]:
    """Return the tests that call a function, the fastest first, up to so many seconds."""
    names = sorted((n for n, test in calls.items() if name in test["calls"]), key=lambda n: calls[n]["seconds"])
    total, kept = 0.0, []
    for n in names:
        total += calls[n]["seconds"]
        if total > patience and kept:
            break
        kept.append(n)
    return kept
