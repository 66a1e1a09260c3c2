"""EFF-Semi and EFF-Semi-Miss: each component of the cost has the weight of only the groups that it needs."""

from .efficient import efficient

__all__ = ["efficient"]
