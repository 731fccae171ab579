"""Every random number has a key of its own, given by seed, environment, step and purpose alone."""

import itertools

import jax
import numpy as np

from thrust_rl.maths.keys import Purpose, environment_keys, purpose_key, step_key


def data(keys):
    return np.asarray(jax.random.key_data(keys))


def test_no_two_uses_share_a_key():
    roots = [jax.random.key(seed) for seed in (0, 1)]
    used = [purpose_key(root, purpose) for root, purpose in itertools.product(roots, Purpose)]
    for root in roots:
        for stream in environment_keys(root, 3):
            steps = [step_key(stream, t) for t in range(10)]
            used += [purpose_key(key, purpose) for key, purpose in itertools.product(steps, Purpose)]
    assert len({tuple(data(key)) for key in used}) == len(used) == len(Purpose) * (2 + 2 * 3 * 10)


def test_a_stream_does_not_depend_on_how_many_run_beside_it():
    key = jax.random.key(5)
    assert np.array_equal(data(environment_keys(key, 3)), data(environment_keys(key, 16))[:3])


def test_a_step_counter_gives_the_same_key_traced_or_not():
    stream = environment_keys(jax.random.key(2), 1)[0]
    assert np.array_equal(data(jax.jit(step_key)(stream, jax.numpy.array(9))), data(step_key(stream, 9)))


def test_the_seeding_contract():
    # Renumbering changes every result ever published with a seed. New purposes are appended.
    names = ["PHYSICS", "RESET", "SENSOR", "ACTION", "POLICY", "SHUFFLE", "ENVIRONMENT", "FRAME", "RESUME"]
    assert [Purpose(i).name for i in range(9)] == names
