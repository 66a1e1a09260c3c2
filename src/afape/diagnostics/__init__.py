"""What the records support for one policy."""

from .implications import MissingnessCheck
from .search import known_unsupported, supported_view, wanted_sets
from .sums import support_of
from .support import Support

__all__ = ["MissingnessCheck", "Support", "known_unsupported", "support_of", "supported_view", "wanted_sets"]
