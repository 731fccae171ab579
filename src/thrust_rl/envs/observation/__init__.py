"""Observation models: what hides, delays or disturbs what an agent sees.

Example:
    >>> parse_observe("mask:1,3|noise:0.1")
    Stacked(models=(Hide(hidden=(1, 3)), GaussianNoise(std=0.1)))
"""

from thrust_rl.envs.observation.delay import Delay as Delay
from thrust_rl.envs.observation.delay import RandomDelay as RandomDelay
from thrust_rl.envs.observation.drop import FrameDrop as FrameDrop
from thrust_rl.envs.observation.flicker import Flicker as Flicker
from thrust_rl.envs.observation.kinds import OBSERVATION_MODELS as OBSERVATION_MODELS
from thrust_rl.envs.observation.kinds import Kind as Kind
from thrust_rl.envs.observation.mask import Hide as Hide
from thrust_rl.envs.observation.mask import Mask as Mask
from thrust_rl.envs.observation.names import COORDINATES as COORDINATES
from thrust_rl.envs.observation.names import coordinate_names as coordinate_names
from thrust_rl.envs.observation.noise import GaussianNoise as GaussianNoise
from thrust_rl.envs.observation.quantize import Quantize as Quantize
from thrust_rl.envs.observation.relay import Relay as Relay
from thrust_rl.envs.observation.stack import Stacked as Stacked
from thrust_rl.envs.observation.stack import models_of as models_of
from thrust_rl.envs.observation.stack import stacked as stacked
from thrust_rl.envs.observation.text import Observe as Observe
from thrust_rl.envs.observation.text import format_observe as format_observe
from thrust_rl.envs.observation.text import observation_model as observation_model
from thrust_rl.envs.observation.text import parse_observe as parse_observe
