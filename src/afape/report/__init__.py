"""The report: one self-contained HTML page that opens offline and lets the reader change prices."""

from .appendix import write_appendix
from .page import require_report, write_report
from .summary import summarize

__all__ = ["require_report", "summarize", "write_appendix", "write_report"]
