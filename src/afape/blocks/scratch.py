"""The scratch folder of a run: blocks of rows, what is finished of them, and what the run was asked."""

from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._processes import locked
from .files import located

__all__ = ["Scratch", "ScratchError", "scratch_of"]

_RUN, _LOCK = "afape-run.json", "afape-run.lock"


class ScratchError(ValueError):
    """A scratch folder that cannot be used."""


@dataclass(frozen=True)
class Scratch:
    """A folder, on any file system of pyarrow. It can be sent to other processes, which must see the same folder.

    Attributes
    ----------
    path : str
        The folder: a path, or a URI.
    """

    path: str

    def _at(self, name: str) -> tuple[Any, str]:
        system, root = located(self.path, "scratch")
        return system, f"{root}/{name}"

    @property
    def local(self) -> bool:
        """True if the folder is on a disk of this machine, or mounted like one."""
        return "://" not in self.path

    def has(self, name: str) -> bool:
        """True if there is a file of this name."""
        from pyarrow import fs

        system, path = self._at(name)
        return bool(system.get_file_info(path).type == fs.FileType.File)

    def read(self, name: str) -> bytes:
        """Return the content of a file."""
        system, path = self._at(name)
        with system.open_input_stream(path) as opened:
            return bytes(opened.read())

    def write(self, name: str, content: bytes) -> None:
        """Write a file, completely or not at all."""
        system, path = self._at(name)
        system.create_dir(path.rsplit("/", 1)[0], recursive=True)
        draft = f"{path}.{os.getpid()}.part"
        try:
            with system.open_output_stream(draft) as opened:
                opened.write(content)
            system.move(draft, path)
        except OSError as error:
            raise _full(self.path, error) from error

    @contextmanager
    def writing(self, name: str) -> Iterator[Any]:
        """Give an open stream that writes a file."""
        system, path = self._at(name)
        system.create_dir(path.rsplit("/", 1)[0], recursive=True)
        with system.open_output_stream(path) as opened:
            yield opened

    def reading(self, name: str) -> Any:
        """Return an open file."""
        system, path = self._at(name)
        return system.open_input_file(path)

    def trusted(self) -> None:
        """Raise an error if somebody else could have written into the folder: objects in it are unpickled."""
        if not self.local or not hasattr(os, "getuid"):
            return
        found = os.stat(self.path)
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise ScratchError(
                f"'scratch' must be a folder that only you can write to, but others can write to {self.path!r}. Use a new "
                f"folder, or chmod 700 {self.path}."
            )

    def clear(self) -> None:
        """Remove the folder and all that is in it."""
        if self.local:
            shutil.rmtree(self.path, ignore_errors=True)
            return
        system, root = located(self.path, "scratch")
        system.delete_dir(root)


def _full(path: str, error: OSError) -> OSError:
    return OSError(
        error.errno,
        f"The scratch folder {path!r} cannot be written to: {error.strerror or error}. What is finished is kept: free some space "
        "and start again with the same scratch folder, or name another one",
    )


@contextmanager
def scratch_of(path: Any, keep: bool, asked: Mapping[str, str]) -> Iterator[Scratch]:
    """Give the scratch folder of a run, and remove it at the end.

    If the run fails, a folder that the user named is kept, so that the same run can go on; a temporary one is removed.

    Parameters
    ----------
    path : str, Path or None
        The folder; None for a temporary one.
    keep : bool
        True to keep it in any case.
    asked : mapping of str
        What the run depends on. A folder with another run is refused.
    """
    if path is None:
        scratch = Scratch(tempfile.mkdtemp(prefix="afape-"))
        try:
            yield scratch
        finally:
            scratch.clear()
        return
    located(path, "scratch")
    scratch = Scratch(str(path) if "://" in str(path) else str(Path(path).expanduser().absolute()))
    held = _prepared(scratch, asked)
    try:
        yield scratch
        if not keep:
            scratch.clear()
    finally:
        if held is not None:
            held.close()


def _prepared(scratch: Scratch, asked: Mapping[str, str]) -> Any:
    """Make the folder, or check that it belongs to the same run; return its lock."""
    held = None
    if scratch.local:
        folder = Path(scratch.path)
        if not folder.exists():
            folder.mkdir(mode=0o700, parents=True)
        elif not folder.is_dir():
            raise ScratchError(f"'scratch' must be a folder, but {scratch.path!r} is a file.")
        elif any(folder.iterdir()) and not scratch.has(_RUN):
            raise ScratchError(f"'scratch' must be a new or empty folder, but {scratch.path!r} has other files.")
        scratch.trusted()
        held = locked(folder / _LOCK)
        if held is None:
            raise ScratchError(f"'scratch' must not be in use, but another run works in {scratch.path!r}.")
    try:
        _check_same(scratch, asked)
    except BaseException:
        if held is not None:
            held.close()
        raise
    return held


def _check_same(scratch: Scratch, asked: Mapping[str, str]) -> None:
    """Note what the run depends on; raise an error if the folder has another run."""
    if scratch.has(_RUN):
        found = json.loads(scratch.read(_RUN))
        if other := [name for name in asked if found.get(name) != asked[name]]:
            raise ScratchError(
                f"'scratch' must be new or the folder of the same run, but {scratch.path!r} has a run with other "
                f"{' and '.join(other)}. Name another folder, or remove this one."
            )
    else:
        scratch.write(_RUN, json.dumps(dict(asked)).encode())
