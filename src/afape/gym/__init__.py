"""Gymnasium environments of feature acquisition. Importing this module registers ``afape/Acquisition-v0``."""

try:
    import gymnasium
except ImportError as error:
    raise ImportError("afape.gym needs gymnasium, which is not installed: pip install 'afape[agents]'.") from error

from .environment import AcquisitionEnv
from .vector import AcquisitionVectorEnv, rollout

__all__ = ["ID", "AcquisitionEnv", "AcquisitionVectorEnv", "rollout"]

ID = "afape/Acquisition-v0"

if ID not in gymnasium.registry:
    gymnasium.register(
        ID,
        entry_point="afape.gym.environment:AcquisitionEnv",
        vector_entry_point="afape.gym.vector:AcquisitionVectorEnv",
    )
