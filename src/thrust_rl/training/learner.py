"""What trainers share: a policy, an optimizer's state, and the compiled PPO update that moves both."""

import abc
import functools
import math
from typing import Any, ClassVar, Generic, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Integer

from thrust_rl.arrays import whole
from thrust_rl.config import PPOConfig
from thrust_rl.maths.finite import all_finite
from thrust_rl.maths.keys import Purpose, purpose_key, step_key
from thrust_rl.maths.returns import Advantages
from thrust_rl.policies.facades import LSTMPolicy, MLPPolicy
from thrust_rl.policies.scoring import Evaluate, score
from thrust_rl.training.learning_rate import learning_rate_of, set_learning_rate, settable
from thrust_rl.training.ppo import Learner, UpdateStats, as_experience, make_optimizer, update
from thrust_rl.training.result import TrainingError
from thrust_rl.training.scoring import Scoring
from thrust_rl.types import Rollout

Policy = TypeVar("Policy", bound=MLPPolicy | LSTMPolicy)


class TrainStats(NamedTuple):
    """What one `train_step` did: means over the minibatches that were looked at."""

    policy_loss: float
    value_loss: float
    entropy: float  # nats
    approx_kl: float
    clip_fraction: float
    explained_variance: float  # of the acting policy's values; NaN where the returns do not vary
    grad_norm: float  # global, before clipping
    n_updates: int  # optimizer steps taken
    early_stopped: bool  # by target_kl


class Trainer(abc.ABC, Generic[Policy]):
    """What trainers share.

    Attributes:
        policy_kind: which policies it can train.
        policy: the one that was given; every `train_step` replaces its `module`.
        n_updates: optimizer steps taken so far.
        total_episodes: as counted by `increment_episodes`.

    Raises:
        TypeError: the policy is of the other kind, or the optimizer is none of optax.
    """

    policy_kind: ClassVar[type]

    def __init__(
        self, config: PPOConfig, policy: Policy, optimizer: optax.GradientTransformation | None = None
    ) -> None:
        if not isinstance(policy, self.policy_kind):
            raise TypeError(
                f"policy is a {type(policy).__name__}: {type(self).__name__} trains a {self.policy_kind.__name__};"
                " an LSTMPolicy needs a RecurrentPPOTrainer, an MLPPolicy a PPOTrainer"
            )
        self.config = config
        self.policy = policy
        self.n_updates = 0
        self.total_episodes = 0
        self._windows = 0  # learnt from so far
        self._optimizer = _default_optimizer(config) if optimizer is None else _bounded(optimizer, config)
        self._opt_state = self._optimizer.init(policy.module)
        if optimizer is None or config.learning_rate is not None:
            self.set_learning_rate(config.learning_rate or policy.config.arm.learning_rate)
        elif settable(self._opt_state):  # from now on a float32 like any that is set later: compiled once
            self._opt_state = set_learning_rate(self._opt_state, learning_rate_of(self._opt_state))

    @property
    def learning_rate(self) -> float | None:
        """The optimizer's present learning rate; None for an optimizer that does not say."""
        rate = float(learning_rate_of(self._opt_state))
        return None if math.isnan(rate) else rate

    def set_learning_rate(self, learning_rate: float) -> None:
        """Use another learning rate from now on; nothing is compiled again.

        Raises:
            ValueError: it is not a finite number at or above 0, or the optimizer keeps no learning rate in its state.
        """
        if not (math.isfinite(learning_rate) and learning_rate >= 0.0):
            raise ValueError(f"learning_rate is {learning_rate}: it must be a finite number at or above 0")
        self._opt_state = set_learning_rate(self._opt_state, jnp.asarray(learning_rate, jnp.float32))

    def increment_episodes(self, n: int = 1) -> None:
        """Count finished episodes."""
        if whole("n", n) < 0:
            raise ValueError(f"n is {n}: finished episodes cannot become fewer")
        self.total_episodes += whole("n", n)

    @abc.abstractmethod
    def train_step(self, buffer: Any, rows: int | None = None, evaluate: Evaluate | None = None) -> TrainStats:
        """All epochs of minibatch steps on one full window; what a row is depends on the policy."""

    def _learn(
        self, rollout: Rollout, advantages: Advantages, rows_per_minibatch: int, evaluate: Evaluate | None
    ) -> TrainStats:
        """One update, taken over only if everything in it is finite."""
        if (rollout.action >= self.policy.action_dim).any():
            raise ValueError(
                f"the buffer holds action {int(rollout.action.max())}, but the policy has {self.policy.action_dim}"
                f" actions, 0 to {self.policy.action_dim - 1}: fill the buffer with what this policy drew"
            )
        learner, stats, finite = _update(
            Learner(self.policy.module, self._opt_state),
            rollout,
            advantages,
            np.uint32(self.policy.config.seed),
            np.int32(self._windows),
            optimizer=self._optimizer,
            config=self.config,
            rows_per_minibatch=rows_per_minibatch,
            has_memory=isinstance(self.policy, LSTMPolicy),
            evaluate=score if evaluate is None else Scoring(evaluate),
        )
        broken = [name for name, good in finite.items() if not good]
        if broken:
            raise TrainingError(
                f"non-finite {' and '.join(broken)} at update {self._windows + 1}; the policy is left as it was:"
                " lower the learning rate, or check the scale of the rewards"
            )
        self.policy.module, self._opt_state = learner
        self._windows += 1
        self.n_updates += int(stats.n_updates)
        return _host(stats)


@functools.partial(jax.jit, static_argnames=("optimizer", "config", "rows_per_minibatch", "has_memory", "evaluate"))
def _update(
    learner: Learner,
    rollout: Rollout,
    advantages: Advantages,
    seed: Integer[Array, ""],
    window: Integer[Array, ""],
    *,
    optimizer: optax.GradientTransformation,
    config: PPOConfig,
    rows_per_minibatch: int,
    has_memory: bool,
    evaluate: Evaluate,
) -> tuple[Learner, UpdateStats, dict[str, Bool[Array, ""]]]:
    """One update as packaged training does it, and whether everything in it is finite."""
    learner, stats = update(
        learner,
        as_experience(rollout, advantages, has_memory=has_memory),
        step_key(purpose_key(jax.random.key(seed), Purpose.SHUFFLE), window),
        optimizer=optimizer,
        config=config,
        rows_per_minibatch=rows_per_minibatch,
        evaluate=evaluate,
    )
    finite = {"advantages": advantages, "losses": stats.losses, "parameters": learner.policy}
    return learner, stats, {name: all_finite(tree) for name, tree in finite.items()}


@functools.lru_cache(maxsize=32)
def _default_optimizer(config: PPOConfig) -> optax.GradientTransformation:
    """One object per configuration, so that trainers of one configuration share a compiled update."""
    return make_optimizer(config)


def _bounded(optimizer: Any, config: PPOConfig) -> optax.GradientTransformation:
    if not isinstance(optimizer, optax.GradientTransformation):
        raise TypeError(
            f"optimizer is {optimizer!r}: pass one of optax, for example optax.adam(1e-3), or None for Adam"
        )
    return optax.chain(optax.clip_by_global_norm(config.max_grad_norm), optimizer)


def _host(stats: UpdateStats) -> TrainStats:
    losses = {name: float(term) for name, term in stats.losses._asdict().items()}
    return TrainStats(
        **losses,
        explained_variance=float(stats.explained_variance),
        n_updates=int(stats.n_updates),
        early_stopped=bool(stats.early_stopped),
    )
