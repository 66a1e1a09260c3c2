"""Commands that have a file of their own."""

from .reproduce import benchmark, reproduce

__all__ = ["benchmark", "reproduce"]
