"""Tables and values as JSON holds them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

__all__ = ["plain_records", "plain_value"]


def plain_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Records with None for what is not a finite number, as JSON wants it."""
    return [
        {str(k): None if isinstance(v, float) and not np.isfinite(v) else v for k, v in record.items()}
        for record in frame.to_dict("records")
    ]


def plain_value(value: Any) -> Any:
    """Numbers of numpy as those of Python, and text for the rest: what ``json.dumps`` takes as ``default``."""
    item = getattr(value, "item", None)
    return item() if callable(item) else str(value)
