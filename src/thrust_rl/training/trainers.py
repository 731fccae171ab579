"""Trainers as objects: shells that check a buffer and call the PPO update of packaged training, compiled."""

from typing import Any

from thrust_rl.arrays import positive
from thrust_rl.config import require_divides
from thrust_rl.policies.facades import LSTMPolicy, MLPPolicy
from thrust_rl.policies.scoring import Evaluate
from thrust_rl.rollout.buffers import RecurrentRolloutBuffer, RolloutBuffer
from thrust_rl.training.learner import Trainer, TrainStats


class PPOTrainer(Trainer[MLPPolicy]):
    """Learns a policy without memory, from minibatches of single transitions.

    The learning rate stays as it is set: `config.anneal_lr` is for packaged training, which knows its budget.

    Args:
        config: settings of PPO. Its `learning_rate`, where given, is set in whichever optimizer.
        policy: learns; its `module` is replaced by every `train_step`.
        optimizer: any of optax, applied to gradients whose global norm is at most `config.max_grad_norm`; wrapped in
            `optax.inject_hyperparams` it takes `set_learning_rate`. None is Adam, as in packaged training.

    Example:
        >>> from thrust_rl import PPOConfig
        >>> trainer = PPOTrainer(PPOConfig(), MLPPolicy(4, 2))
        >>> trainer.set_learning_rate(1e-3)
        >>> round(trainer.learning_rate, 6), trainer.n_updates
        (0.001, 0)
    """

    policy_kind = MLPPolicy

    def train_step(
        self, buffer: RolloutBuffer, batch_size: int | None = None, evaluate: Evaluate | None = None
    ) -> TrainStats:
        """All epochs of minibatch steps on one full window.

        Args:
            buffer: full, with advantages.
            batch_size: transitions in a minibatch; None is the configuration's.
            evaluate: replaces the scoring: `(module, obs, actions, episode_starts, initial_state) -> (log_probs,
                entropy, values)`. Rows are single transitions: `[row, 1, ...]`. It is traced and differentiated
                through; `policies.scoring.score` is the default.

        Raises:
            ValueError: the buffer and the policy or the minibatches do not fit, or there are no advantages yet.
            TrainingError: something was not finite; the message says what.
        """
        _require_kind(buffer, RolloutBuffer, self)
        _require_same("obs_dim", buffer.obs_dim, self.policy.obs_dim)
        rows = _minibatch("batch_size", batch_size, self.config.batch_size)
        require_divides("batch_size", rows, "num_envs x num_steps", buffer.num_envs * buffer.num_steps)
        return self._learn(*buffer.learnable, rows, evaluate)


class RecurrentPPOTrainer(Trainer[LSTMPolicy]):
    """Learns a policy with memory, from minibatches of whole windows replayed from their m_0.

    The learning rate stays as it is set: `config.anneal_lr` is for packaged training, which knows its budget.

    Args:
        config: settings of PPO. Its `learning_rate`, where given, is set in whichever optimizer.
        policy: learns; its `module` is replaced by every `train_step`.
        optimizer: any of optax, applied to gradients whose global norm is at most `config.max_grad_norm`; wrapped in
            `optax.inject_hyperparams` it takes `set_learning_rate`. None is Adam, as in packaged training.

    Example:
        >>> import optax
        >>> from thrust_rl import PPOConfig
        >>> optimizer = optax.inject_hyperparams(optax.lamb)(learning_rate=0.01)
        >>> trainer = RecurrentPPOTrainer(PPOConfig(), LSTMPolicy(4, 2), optimizer)
        >>> round(trainer.learning_rate, 6)
        0.01
    """

    policy_kind = LSTMPolicy

    def train_step(
        self, buffer: RecurrentRolloutBuffer, envs_per_minibatch: int | None = None, evaluate: Evaluate | None = None
    ) -> TrainStats:
        """All epochs of minibatch steps on one full window.

        Args:
            buffer: full, with advantages.
            envs_per_minibatch: whole windows in a minibatch; None is the configuration's.
            evaluate: replaces the scoring: `(module, obs, actions, episode_starts, initial_state) -> (log_probs,
                entropy, values)`, all `[row, time, ...]`. It is traced and differentiated through;
                `policies.scoring.score` is the default.

        Raises:
            ValueError: the buffer and the policy or the minibatches do not fit, or there are no advantages yet.
            TrainingError: something was not finite; the message says what.
        """
        _require_kind(buffer, RecurrentRolloutBuffer, self)
        _require_same("obs_dim", buffer.obs_dim, self.policy.obs_dim)
        _require_same("hidden_dim", buffer.hidden_dim, self.policy.config.hidden_dim)
        rows = _minibatch("envs_per_minibatch", envs_per_minibatch, self.config.envs_per_minibatch)
        require_divides("envs_per_minibatch", rows, "num_envs", buffer.num_envs)
        return self._learn(*buffer.learnable, rows, evaluate)


def _minibatch(name: str, given: int | None, default: int) -> int:
    return positive(name, default if given is None else given)


def _require_kind(buffer: Any, kind: type, trainer: object) -> None:
    if not isinstance(buffer, kind):
        raise TypeError(f"the buffer is a {type(buffer).__name__}: {type(trainer).__name__} needs a {kind.__name__}")


def _require_same(name: str, buffer: int, policy: int) -> None:
    if buffer != policy:
        raise ValueError(f"{name} is {buffer} in the buffer but {policy} in the policy: build both with the same one")
