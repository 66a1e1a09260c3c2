"""Worker processes: never more than tasks, and gone when their parent is. Locks that end with their process."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

from joblib import Parallel, delayed, effective_n_jobs

__all__ = ["in_processes", "locked", "watch"]

_PAUSE = 1.0  # seconds between two looks at the parent


def in_processes(
    function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], n_jobs: int | None, **options: Any
) -> Iterator[Any]:
    """Yield ``function(*task)`` of every task, computed by processes; ``options`` are those of `joblib.Parallel`."""
    if not tasks:
        return iter(())
    jobs = min(effective_n_jobs(n_jobs), len(tasks))
    pool = Parallel(n_jobs=jobs, **({"return_as": "generator"} | options))
    found: Iterator[Any] = pool(delayed(_watched)(os.getpid(), function, *task) for task in tasks)
    return found


def _watched(parent: int, function: Callable[..., Any], *task: Any) -> Any:
    if os.getppid() == parent:  # a process of its own, started by the parent
        watch(parent)
    return function(*task)


@cache
def watch(parent: int) -> None:
    """End this process soon after its parent has ended, killed or not: nobody would read its results."""

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_PAUSE)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


def locked(file: Path) -> IO[str] | None:
    """Return the file with a lock, or None if another process has it. The lock ends when the file is closed, or the process."""
    opened = file.open("a+", encoding="utf-8")
    try:
        import fcntl

        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # without locks, as on Windows, every process gets the file
        pass
    except OSError:
        opened.close()
        return None
    return opened
