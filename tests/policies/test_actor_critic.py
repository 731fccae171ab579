"""The actor-critic: unroll folds step, heads are plain algebra, gradients are right, N envs act as one does."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

from envs_for_tests import QUICK, drawn_policy
from thrust_rl.config import ARMS, ArmConfig
from thrust_rl.envs.actions import DiscreteActions
from thrust_rl.envs.spaces import vector_spec
from thrust_rl.policies.actor_critic import build_policy, count_parameters, empty_memory

ARMS_UNDER_TEST = {
    "lstm": ArmConfig("lstm", cell="lstm", hidden_dim=5),
    "encoded-lstm": ArmConfig("encoded-lstm", cell="lstm", encoder_sizes=(7,), hidden_dim=5),
    "mlp": ArmConfig("mlp", encoder_sizes=(7, 6)),
    "linear": ArmConfig("linear"),
}
OBS_DIM, TIME = 3, 6
STARTS = jnp.array([False, False, True, False, True, False])
FOUR_NUMBERS = (vector_spec(4), DiscreteActions(2))


@pytest.fixture(params=ARMS_UNDER_TEST, name="policy")
def any_policy(request):
    return drawn_policy(ARMS_UNDER_TEST[request.param], OBS_DIM, 1)


def observations(count, seed=0):
    return jax.random.normal(jax.random.key(seed), (count, OBS_DIM))


def test_unroll_is_the_fold_of_step(policy):
    obs = observations(TIME)
    memory = jax.tree.map(lambda leaf: leaf + 0.5, policy.initial())
    final, output = jax.jit(type(policy).unroll)(policy, memory, obs, STARTS)
    step = jax.jit(type(policy).step)
    for t in range(TIME):
        memory, at_t = step(policy, memory, obs[t], STARTS[t])
        jax.tree.map(lambda x, y, t=t: np.testing.assert_allclose(x, y[t], rtol=1e-5, atol=1e-6), at_t, output)
    jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6), final, memory)


def test_gradient_equals_finite_differences(policy):
    with jax.enable_x64(True):
        policy = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), policy)
        obs = observations(TIME).astype(jnp.float64)

        def said(policy, obs):
            return tuple(policy.unroll(policy.initial(), obs, STARTS)[1])

        check_grads(jax.jit(said), (policy, obs), order=1, modes=["rev"], atol=1e-5, rtol=1e-5)


def test_memoryless_output_is_two_layers_of_plain_algebra():
    policy = drawn_policy(ARMS_UNDER_TEST["mlp"], OBS_DIM, 2)
    obs = features = observations(TIME)
    for layer in policy.encoder.layers:
        features = np.maximum(features @ np.asarray(layer.weight) + np.asarray(layer.bias), 0.0)
    _, output = policy.unroll((), obs, STARTS)
    logits = features @ np.asarray(policy.actor.weight) + np.asarray(policy.actor.bias)
    value = (features @ np.asarray(policy.critic.weight) + np.asarray(policy.critic.bias))[:, 0]
    np.testing.assert_allclose(output.distribution.logits, logits, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(output.value, value, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("num_envs", [1, 3, 7])
def test_any_number_of_environments_acts_as_each_would_alone(policy, num_envs):
    obs, starts = observations(num_envs, seed=num_envs), jnp.arange(num_envs) % 2 == 0
    memory = jax.tree.map(lambda leaf: leaf + 0.5, empty_memory(policy, num_envs))
    batch = jax.jit(jax.vmap(policy.step))(memory, obs, starts)
    step = jax.jit(type(policy).step)
    for env in range(num_envs):
        mine = jax.tree.map(lambda leaf, env=env: leaf[env], (memory, batch))
        alone = step(policy, mine[0], obs[env], starts[env])
        jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6), alone, mine[1])


@pytest.mark.parametrize("arm", ARMS)
def test_first_policy_is_nearly_uniform_and_a_function_of_its_key(arm):
    build = functools.partial(build_policy, ARMS[arm], *FOUR_NUMBERS)
    compiled = jax.jit(lambda key: build(key=key), compiler_options=QUICK)
    first, again, other = (compiled(jax.random.key(seed)) for seed in (0, 0, 1))
    jax.tree.map(np.testing.assert_array_equal, first, again)
    assert not np.array_equal(first.actor.weight, other.actor.weight)
    _, output = first.unroll(first.initial(), jnp.eye(4), jnp.zeros(4, bool))
    assert np.abs(jax.nn.softmax(output.distribution.logits) - 0.5).max() < 0.02


def test_parameters_counted_by_hand():
    shapes = jax.eval_shape(lambda: build_policy(ARMS["lstm"], *FOUR_NUMBERS, key=jax.random.key(0)))
    assert count_parameters(shapes_as_arrays(shapes)) == (4 + 64 + 1) * 256 + 64 * 2 + 2 + 64 + 1 == 17_859
    shapes = jax.eval_shape(lambda: build_policy(ARMS["mlp"], *FOUR_NUMBERS, key=jax.random.key(0)))
    assert count_parameters(shapes_as_arrays(shapes)) == 5 * 128 + 129 * 128 + 128 * 2 + 2 + 128 + 1 == 17_539


def shapes_as_arrays(shapes):
    return jax.tree.map(lambda shape: jnp.zeros(shape.shape), shapes)
