"""Gymnasium vector environments of every autoreset mode, and of two that say less than Gymnasium's own."""

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

from thrust_rl.envs.task import HostTask, VectorTask

RESETS_TAKE_NO_STEP = [AutoresetMode.DISABLED, AutoresetMode.SAME_STEP, "dense", "sparse"]
MODES = [*RESETS_TAKE_NO_STEP, AutoresetMode.NEXT_STEP]


class Dense(VectorWrapper):
    """Final observations as one dense array instead of an array of objects."""

    def step(self, actions):
        *rest, info = self.env.step(actions)
        if "final_obs" in info:
            final = np.zeros((self.num_envs, 3), np.float32)
            for i in np.flatnonzero(info["_final_obs"]):
                final[i] = info["final_obs"][i]
            info = {**info, "final_obs": final}
        return *rest, info


class Sparse(VectorWrapper):
    """A reset of some shows zeros where it resets nothing."""

    def reset(self, *, seed=None, options=None):
        resets = np.array((options or {}).get("reset_mask", np.ones(self.num_envs, bool)))
        obs, info = self.env.reset(seed=seed, options=options)
        return np.where(resets[:, None], obs, np.float32(0.0)), info


def vector_of(make_env, mode, num_envs):
    """Of a mode of Gymnasium's, or "dense" (SAME_STEP) or "sparse" (DISABLED)."""
    if mode == "dense":
        return Dense(vector_of(make_env, AutoresetMode.SAME_STEP, num_envs))
    if mode == "sparse":
        return Sparse(vector_of(make_env, AutoresetMode.DISABLED, num_envs))
    return SyncVectorEnv([make_env] * num_envs, autoreset_mode=mode)


def stepped(make_env, mode):
    """One by one where there is no autoreset mode, else as a vector environment."""
    if mode is None:
        return HostTask("one by one", make_env)
    return VectorTask("vector", lambda n: vector_of(make_env, mode, n))
