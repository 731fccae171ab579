"""`train`: reproducible, seed by seed or mapped, loud about numbers that are not finite, at home in odd episodes."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from envs_for_tests import LSTM_ARM, MLP_ARM, Counter, Poisoned, Short, environment, settings
from thrust_rl.training.result import TrainingError
from thrust_rl.training.train import train

SHORT = environment(Short(2))


def numbers(result):
    leaves = jax.tree.leaves((result.state.learner.policy, result.state.actor, result.state.moments))
    return [np.asarray(leaf) for leaf in leaves] + [np.array(result.curve.mean_return), np.array(result.curve.steps)]


def test_same_seed_same_bits_other_seed_other_run():
    """Episodes of one and two steps; seeds run one after the other through one compiled program."""
    config = settings(updates=5, window_start="stored")
    first, again, other = train(SHORT, LSTM_ARM, config, seeds=(0, 0, 1), vectorize_seeds=False)
    for a, b in zip(numbers(first), numbers(again), strict=True):
        np.testing.assert_array_equal(a, b)
    assert first.curve.mean_return != other.curve.mean_return
    assert first.seconds_compile > 0.0 and again.seconds_compile == other.seconds_compile == 0.0
    assert first.steps == 5 * 4 * 8 and first.curve.steps == [32, 64, 96, 128, 160]
    assert 160 / 2 <= first.curve.episodes <= 160
    # Lengths 1 and 2; tag + time + action summed: between 1 and 2·1 + (1 + 2) + 2.
    assert all(1.0 < mean < 7.0 for mean in first.curve.mean_return)


def test_seeds_in_one_program_equal_seeds_one_by_one():
    config = settings(updates=5, window_start="stored")
    looped = train(SHORT, LSTM_ARM, config, seeds=(0, 1), vectorize_seeds=False)
    mapped = train(SHORT, LSTM_ARM, config, seeds=(0, 1), vectorize_seeds=True)
    for one, other in zip(looped, mapped, strict=True):
        assert (one.seed, one.curve.episodes, one.params) == (other.seed, other.curve.episodes, other.params)
        for a, b in zip(numbers(one), numbers(other), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4)


def test_progress_ends_with_the_whole_budget_and_may_stop_the_run():
    config, seen = settings(updates=5, window_start="stored"), []
    train(SHORT, LSTM_ARM, config, seeds=(7,), vectorize_seeds=False, on_progress=seen.append)
    assert [p.steps for p in seen] == sorted({p.steps for p in seen})
    assert seen[0].steps == 32 and seen[-1].steps == seen[-1].total_steps == 160
    assert seen[-1].seeds == (7,)

    def stop(progress):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(SHORT, LSTM_ARM, config, seeds=(7,), vectorize_seeds=False, on_progress=stop)


@pytest.mark.parametrize(
    ("in_reward", "step", "update", "named", "innocent"),
    [(True, 17, 3, "rewards", "observations"), (False, 8, 1, "observations", "rewards")],
    ids=["reward", "observation"],
)
def test_a_nan_stops_the_run_at_its_update_and_is_named(in_reward, step, update, named, innocent):
    """F13, windows of 8: transition 17 is in update 3; observation 8 arrives with the last one of update 1."""
    env = environment(Poisoned(step, in_reward))
    with pytest.raises(TrainingError) as caught:
        train(env, MLP_ARM, settings(updates=4, normalize_obs=False))
    names, where = re.match(r"non-finite (.*) at update (\d of \d):", str(caught.value)).groups()
    assert where == f"{update} of 4"
    assert named in names.split(" and ") and innocent not in names.split(" and ")


def test_a_learning_rate_without_measure_is_caught_at_its_update():
    """Parameters that overflow are named although every observation and reward was fine."""
    config = settings(updates=3, learning_rate=1e38, anneal_lr=False, normalize_obs=False)
    with pytest.raises(TrainingError, match=r"non-finite (losses and )?parameters at update 1 of 3"):
        train(environment(Counter(), max_steps=5), MLP_ARM, config)


def test_episodes_that_never_end_give_an_empty_curve():
    (result,) = train(environment(Counter()), MLP_ARM, settings(normalize_obs=False))
    assert (result.curve.steps, result.curve.mean_return, result.curve.episodes) == ([], [], 0)
    assert result.curve.final is None and result.curve.best is None
    assert int(result.state.update) == 3
    np.testing.assert_array_equal(result.state.actor.env_state.elapsed, jnp.full(4, 24))
