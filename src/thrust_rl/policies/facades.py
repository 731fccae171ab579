"""Policies as objects with arrays in and out: shells that hold an `ActorCritic` and call it, compiled."""

from typing import Any

import numpy as np
from jaxtyping import Float, Int

from thrust_rl import arrays
from thrust_rl.envs.checks import checked_seed
from thrust_rl.memory.lstm import LSTMMemory
from thrust_rl.policies import compiled
from thrust_rl.policies.actor_critic import ActorCritic
from thrust_rl.policies.configs import LSTMConfig, MLPConfig

Floats = Float[np.ndarray, " env"]
Sequences = Float[np.ndarray, "env time"]


class MLPPolicy:
    """A policy that sees nothing but the present observation.

    `module` is the policy itself, a pytree; a trainer replaces it. Two policies of one configuration are equal bit
    for bit, and equal to what packaged training starts from with that seed.

    Args:
        obs_dim: length of an observation.
        action_dim: number of discrete actions.
        config: sizes and seed.

    Example:
        >>> import numpy as np
        >>> policy = MLPPolicy(4, 2, MLPConfig(seed=7))
        >>> actions, log_probs, values = policy.get_action(np.zeros((3, 4), np.float32))
        >>> actions.shape, log_probs.shape, values.shape
        ((3,), (3,), (3,))
    """

    def __init__(self, obs_dim: int, action_dim: int, config: MLPConfig | None = None) -> None:
        self.config = config or MLPConfig()
        self.obs_dim, self.action_dim = arrays.positive("obs_dim", obs_dim), arrays.positive("action_dim", action_dim)
        self.module: ActorCritic = compiled.built(self.config.arm, self.obs_dim, self.action_dim, self.config.seed)
        self.next_step = 0  # t of the next action drawn, over all episodes: it chooses the random numbers

    def get_action(self, obs: Any) -> tuple[Int[np.ndarray, " env"], Floats, Floats]:
        """Draw one action per environment.

        Call it once per step of the environments: every call takes the next step's random numbers, which are those
        of packaged training with this seed.

        Args:
            obs: o_t, `[env, obs]`.

        Returns:
            Actions, their log-probabilities, and the values of the observations, each `[env]`.
        """
        obs = self._observations(obs)
        drawn = compiled.draw(self.module, obs, np.uint32(self.config.seed), np.int32(self.next_step))
        self.next_step += 1
        return np.array(drawn[0]), np.array(drawn[1]), np.array(drawn[2])

    def evaluate_actions(self, obs: Any, actions: Any) -> tuple[Floats, Floats, Floats]:
        """Log-probabilities of these actions, entropies (nats) and values, each `[env]`."""
        obs = self._observations(obs)
        actions = arrays.integers("actions", actions, obs.shape[:1], "env", below=self.action_dim)
        scores = compiled.score(self.module, obs[:, None], actions[:, None], np.ones((len(obs), 1), bool), ())
        return np.array(scores.log_prob)[:, 0], np.array(scores.entropy)[:, 0], np.array(scores.value)[:, 0]

    def predict_values(self, obs: Any) -> Floats:
        """Values of observations `[env, obs]`; no random number is taken."""
        obs = self._observations(obs)
        return np.array(compiled.look(self.module, obs, (), np.ones(len(obs), bool))[1].value)

    def _observations(self, obs: Any) -> Any:
        return arrays.floats("obs", obs, (None, self.obs_dim), "env obs")


class LSTMPolicy:
    """A policy with memory; whoever acts with it carries the memory from step to step.

    `module` is the policy itself, a pytree; a trainer replaces it. Two policies of one configuration are equal bit
    for bit, and equal to what packaged training starts from with that seed.

    Args:
        obs_dim: length of an observation.
        action_dim: number of discrete actions.
        config: size and seed.

    Example:
        >>> import numpy as np
        >>> policy = LSTMPolicy(4, 2)
        >>> logits, values, state = policy.forward_step(np.zeros((3, 4), np.float32), None)
        >>> actions, log_probs = sample_actions(logits, seed=policy.config.seed, step=0)
        >>> logits.shape, values.shape, state.hidden.shape, actions.shape
        ((3, 2), (3,), (3, 64), (3,))
    """

    def __init__(self, obs_dim: int, action_dim: int, config: LSTMConfig | None = None) -> None:
        self.config = config or LSTMConfig()
        self.obs_dim, self.action_dim = arrays.positive("obs_dim", obs_dim), arrays.positive("action_dim", action_dim)
        self.module: ActorCritic = compiled.built(self.config.arm, self.obs_dim, self.action_dim, self.config.seed)

    def forward_step(
        self, obs: Any, state: LSTMMemory | None, *, episode_start: Any = None
    ) -> tuple[Float[np.ndarray, "env action"], Floats, LSTMMemory]:
        """Consume o_t with m_t.

        Args:
            obs: o_t, `[env, obs]`.
            state: m_t, leaves `[env, hidden]`; None is the empty memory, as `empty_memory` gives it.
            episode_start: o_t opens an episode, `[env]`: the cell forgets before it reads. None: it opens none, as
                where the rows of the state whose episode ended were set to zero by hand, which comes to the same.

        Returns:
            Logits `[env, action]`, values `[env]`, and m_{t+1}, whose arrays are the caller's to change.
        """
        obs = arrays.floats("obs", obs, (None, self.obs_dim), "env obs")
        starts = np.zeros(len(obs), bool) if episode_start is None else episode_start
        starts = arrays.flags("episode_start", starts, obs.shape[:1], "env")
        memory, output = compiled.look(self.module, obs, self._memory(state, len(obs)), starts)
        return np.array(output.distribution.logits), np.array(output.value), LSTMMemory(*map(arrays.copied, memory))

    def evaluate_sequences(
        self, obs_seq: Any, actions: Any, initial_state: LSTMMemory | None, episode_starts: Any
    ) -> tuple[Sequences, Sequences, Sequences]:
        """Replay whole windows.

        Args:
            obs_seq: o_0 … o_{T-1}, `[env, time, obs]`.
            actions: a_0 … a_{T-1}, `[env, time]`.
            initial_state: m_0, leaves `[env, hidden]`; None is the empty memory.
            episode_starts: o_t opens an episode: forget before reading it, `[env, time]`.

        Returns:
            Log-probabilities of the actions, entropies (nats) and values, each `[env, time]`.
        """
        obs_seq = arrays.floats("obs_seq", obs_seq, (None, None, self.obs_dim), "env time obs")
        steps = obs_seq.shape[:2]
        actions = arrays.integers("actions", actions, steps, "env time", below=self.action_dim)
        starts = arrays.flags("episode_starts", episode_starts, steps, "env time")
        scores = compiled.score(self.module, obs_seq, actions, starts, self._memory(initial_state, len(obs_seq)))
        return np.array(scores.log_prob), np.array(scores.entropy), np.array(scores.value)

    def empty_memory(self, num_envs: int) -> LSTMMemory:
        """What every episode begins with: zeros `[env, hidden]`, in arrays that are the caller's to change."""
        shape = (arrays.positive("num_envs", num_envs), self.config.hidden_dim)
        return LSTMMemory(arrays.zeros(shape), arrays.zeros(shape))

    def _memory(self, state: LSTMMemory | None, num_envs: int) -> LSTMMemory:
        if state is None:
            return self.empty_memory(num_envs)
        return _checked_memory(state, (num_envs, self.config.hidden_dim))


def sample_actions(logits: Any, *, seed: int, step: int) -> tuple[Int[np.ndarray, " env"], Floats]:
    """Draw one action per environment, with the random numbers of packaged training.

    Args:
        logits: `[env, action]`.
        seed: of the run.
        step: t, counted from 0 over all episodes and windows of the run.

    Returns:
        Actions and their log-probabilities, each `[env]`.

    Example:
        >>> import numpy as np
        >>> sample_actions(np.array([[0.0, 99.0], [99.0, 0.0]]), seed=0, step=0)[0].tolist()
        [1, 0]
    """
    logits = arrays.floats("logits", logits, (None, None), "env action")
    t = arrays.whole("step", step)
    if not 0 <= t < 2**31:
        raise ValueError(f"step is {t}: the steps of a run are counted from 0 to 2**31 - 1")
    actions, log_probs = compiled.sample(logits, np.uint32(checked_seed(seed)), np.int32(t))
    return np.array(actions), np.array(log_probs)


def _checked_memory(state: LSTMMemory, shape: arrays.Shape) -> LSTMMemory:
    if not isinstance(state, LSTMMemory):
        raise TypeError(f"state is a {type(state).__name__}: pass LSTMMemory(hidden=..., cell=...), or None for empty")
    halves: Any = (arrays.floats(f"state.{name}", half, shape, "env hidden") for name, half in state._asdict().items())
    return LSTMMemory(*halves)
