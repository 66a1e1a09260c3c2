"""Agents and classifiers in files that run no foreign code."""

from .files import load, save
from .refusal import StorageError

__all__ = ["StorageError", "load", "save"]
