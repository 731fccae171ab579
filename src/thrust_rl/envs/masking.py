"""Action masks from `info`: an environment that reports one gets it into its observation."""

from typing import Any

import gymnasium
import numpy as np

from thrust_rl.envs.faults import Fault
from thrust_rl.envs.mask_faults import MISSING
from thrust_rl.envs.spaces import MASK_KEY


class MaskInObservation(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Observations `{"obs": ..., "action_mask": ...}`, with the mask from `info["action_mask"]`.

    A final observation may come without a mask: nobody acts on it.

    Args:
        env: reports a mask after every reset and step.
        alternatives: length of the mask.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], alternatives: int) -> None:
        super().__init__(env)
        mask = gymnasium.spaces.MultiBinary(alternatives)
        self.observation_space = gymnasium.spaces.Dict({"obs": env.observation_space, MASK_KEY: mask})

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        obs, info = self.env.reset(seed=seed, options=options)
        return self._masked(obs, info, is_over=False), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """One transition."""
        obs, reward, terminated, truncated, info = self.env.step(action)
        return self._masked(obs, info, is_over=terminated or truncated), reward, terminated, truncated, info

    def _masked(self, obs: Any, info: dict[str, Any], *, is_over: bool) -> dict[str, Any]:
        length = self.observation_space[MASK_KEY].shape[0]  # type: ignore[index]
        mask = info.get(MASK_KEY)
        if mask is None:
            if not is_over:
                raise Fault(MISSING)
            mask = np.ones(length, np.int8)
        return {"obs": obs, MASK_KEY: mask}
