"""Gymnasium vector environments of every autoreset mode, and three that say less or do less than Gymnasium's own."""

import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper

from thrust_rl.envs.task import HostTask, VectorTask

RESETS_TAKE_NO_STEP = [*AutoresetMode, "dense", "sparse"]
IN_A_STEP = "in a step"  # NEXT_STEP, of a vector that cannot be told to reset between two steps
MODES = [*RESETS_TAKE_NO_STEP, IN_A_STEP]


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


class InStep(VectorWrapper):
    """Resets all, or what ended as it steps; it knows no `reset_mask`."""

    def reset(self, *, seed=None, options=None):
        assert options is None
        return self.env.reset(seed=seed)


def of_mode(env_fns, mode):
    """Of a mode of Gymnasium's, or "dense" (SAME_STEP), "sparse" (DISABLED) or "in a step" (NEXT_STEP)."""
    around = {"dense": Dense, "sparse": Sparse, IN_A_STEP: InStep}.get(mode, lambda vector: vector)
    inside = {"dense": AutoresetMode.SAME_STEP, "sparse": AutoresetMode.DISABLED, IN_A_STEP: AutoresetMode.NEXT_STEP}
    return around(SyncVectorEnv(env_fns, autoreset_mode=inside.get(mode, mode)))


def vector_of(make_env, mode, num_envs):
    """So many that are alike."""
    return of_mode([make_env] * num_envs, mode)


def stepped(make_env, mode):
    """One by one where there is no autoreset mode, else as a vector environment."""
    if mode is None:
        return HostTask("one by one", make_env)
    return VectorTask("vector", lambda n: vector_of(make_env, mode, n))
