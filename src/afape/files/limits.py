"""Limits on what is read from a file: sizes of zips and of arrays are checked before anything is unpacked."""

from __future__ import annotations

import io
import math
import zipfile

import numpy as np
from numpy.lib import format as npy

from .errors import StorageError

__all__ = ["Allowance", "checked_array"]

_FREE, _FACTOR = 2**26, 20  # unpacked, a file may have 64 MB and twenty times its own size
_ENTRIES = 100_000


class Allowance:
    """Bytes that may still be unpacked from a file, including the zips inside it."""

    def __init__(self, file_size: int) -> None:
        self.left = _FREE + _FACTOR * file_size

    def open(self, content: bytes) -> zipfile.ZipFile:
        """Open a zip; raise an error if it would unpack to more than what is left, or if an entry is unusual."""
        archive = zipfile.ZipFile(io.BytesIO(content))
        entries = archive.infolist()
        self.left -= sum(entry.file_size for entry in entries)
        if len(entries) > _ENTRIES or self.left < 0:
            raise StorageError(
                "The file would need much more memory than its size suggests. It is damaged or forged; if you trust its "
                "source, pass unsafe=True."
            )
        if len({entry.filename for entry in entries}) < len(entries):
            raise StorageError("The file is damaged or forged: two of its entries have one name.")
        return archive


def checked_array(content: bytes) -> np.ndarray:
    """Read an array of numbers or text; its header must agree with the number of bytes, which is checked first."""
    buffer = io.BytesIO(content)
    version = npy.read_magic(buffer)
    if version not in ((1, 0), (2, 0)):
        raise StorageError(f"The file has an array of version {version}, which afape does not write.")
    shape, _, dtype = (npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0)(buffer)
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(content) - buffer.tell():
        raise StorageError("The file is damaged or forged: an array has not the size that its header states.")
    buffer.seek(0)
    return np.asarray(np.load(buffer, allow_pickle=False))
