"""HandsOutCopies: results whose tables and arrays cannot be changed through what they hand out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

__all__ = ["HandsOutCopies", "read_only"]


class HandsOutCopies:
    """Base of results: attributes that are DataFrames or dicts are handed out as copies, arrays as read-only views.

    So a user who edits ``result.table`` changes neither the result nor its report.
    """

    if not TYPE_CHECKING:

        def __getattribute__(self, name: str) -> Any:
            value = object.__getattribute__(self, name)
            if name.startswith("__"):
                return value
            if isinstance(value, pd.DataFrame):
                return value.copy()
            if type(value) is dict:
                return dict(value)
            return read_only(value) if isinstance(value, np.ndarray) else value


def read_only(array: Any) -> Any:
    """Return a view of an array that cannot be written to."""
    view = array.view()
    view.setflags(write=False)
    return view
