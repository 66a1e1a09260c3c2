"""Why values are missing: assumptions to analyse under, mechanisms to generate from."""

from .assumptions import MAR, MCAR
from .mechanisms import IndependentMechanism, LogisticMechanism

__all__ = ["MAR", "MCAR", "IndependentMechanism", "LogisticMechanism"]
