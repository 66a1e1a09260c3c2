"""Tables as plain records, ready for JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

__all__ = ["plain_records"]


def plain_records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Records with None for what is not a finite number, as JSON wants it."""
    return [
        {str(k): None if isinstance(v, float) and not np.isfinite(v) else v for k, v in record.items()}
        for record in frame.to_dict("records")
    ]
