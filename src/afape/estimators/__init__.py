"""Estimators: one file per method, and a catalogue with one line per method."""

from .estimate import TARGETS, Bounds, Estimate

__all__ = ["TARGETS", "Bounds", "Estimate"]
