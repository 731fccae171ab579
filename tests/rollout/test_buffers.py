"""Buffers keep what they are given where it belongs, tell the ways of ending apart, and refuse what does not fit."""

import numpy as np
import pytest

from thrust_rl.rollout.buffers import RecurrentRolloutBuffer, RolloutBuffer

T, N, D, H = 5, 3, 2, 4
GAMMA, LAMBDA = 0.9, 0.8
ALL = slice(None)


def window(seed=0):
    """Random steps, arrays `[time, env, ...]`, with both kinds of end inside and at the last step."""
    rng = np.random.default_rng(seed)
    terminated, truncated = np.zeros((T, N), bool), np.zeros((T, N), bool)
    terminated[1, 0] = terminated[-1, 1] = True
    truncated[2, 1] = truncated[-1, 2] = True
    floats = {name: rng.normal(size=(T, N)).astype(np.float32) for name in ("rewards", "values", "log_probs")}
    return {
        "obs": rng.normal(size=(T, N, D)).astype(np.float32),
        "actions": rng.integers(0, 3, (T, N)),
        **floats,
        "terminated": terminated,
        "truncated": truncated,
        "final_values": rng.normal(size=(T, N)).astype(np.float32),
    }


def step_of(data, t):
    return {name: array[t] for name, array in data.items()}


def filled(buffer, data):
    for t in range(T):
        buffer.add(t, **step_of(data, t))
    return buffer


def plain():
    return RolloutBuffer(T, N, D)


def recurrent():
    return RecurrentRolloutBuffer(T, N, D, H)


def state(value, *shape):
    return np.full(shape, value, np.float32), np.full(shape, -value, np.float32)


def test_rollout_is_trajectory_major_and_complete():
    data = window()
    rollout = filled(plain(), data).rollout
    names = {"obs": "obs", "action": "actions", "reward": "rewards", "value": "values", "log_prob": "log_probs"}
    for field, name in (names | {"terminated": "terminated", "truncated": "truncated"}).items():
        for t in range(T):
            for env in range(N):
                np.testing.assert_array_equal(getattr(rollout, field)[env, t], data[name][t, env], err_msg=field)


def test_episode_starts_follow_the_ends_over_windows():
    buffer, data = plain(), window()
    first = filled(buffer, data).rollout.episode_start
    over = (data["terminated"] | data["truncated"]).T
    assert first[:, 0].all()
    np.testing.assert_array_equal(first[:, 1:], over[:, :-1])
    buffer.reset()
    np.testing.assert_array_equal(filled(buffer, data).rollout.episode_start[:, 0], over[:, -1])


def advantages_by_definition(data, last_values):
    """The sum of δ over the rest of each episode, environment by environment."""
    advantages = np.zeros((N, T))
    for env in range(N):
        deltas = []
        for t in range(T):
            if data["terminated"][t, env]:
                successor = 0.0
            elif data["truncated"][t, env]:
                successor = data["final_values"][t, env]
            else:
                successor = last_values[env] if t == T - 1 else data["values"][t + 1, env]
            deltas.append(data["rewards"][t, env] + GAMMA * successor - data["values"][t, env])
        for t in range(T):
            weight = 1.0
            for k in range(t, T):
                advantages[env, t] += weight * deltas[k]
                weight *= GAMMA * LAMBDA
                if data["terminated"][k, env] or data["truncated"][k, env]:
                    break
    return advantages


@pytest.mark.parametrize("build", [plain, recurrent])
def test_advantages_tell_the_ways_of_ending_apart(build):
    data, last_values = window(), np.float32([0.3, -2.0, 5.0])
    buffer = filled(build(), data)
    buffer.compute_advantages(last_values, GAMMA, LAMBDA)
    expected = advantages_by_definition(data, last_values)
    np.testing.assert_allclose(buffer.advantages, expected, atol=1e-5)
    np.testing.assert_allclose(buffer.returns, expected + data["values"].T, atol=1e-5)


def test_computing_advantages_again_overwrites_nothing():
    data = window()
    buffer = filled(plain(), data)
    buffer.compute_advantages(np.float32([9.0, 9.0, 9.0]), 1.0, 1.0)
    buffer.compute_advantages(np.float32([0.3, -2.0, 5.0]), GAMMA, LAMBDA)
    np.testing.assert_allclose(buffer.advantages, advantages_by_definition(data, [0.3, -2.0, 5.0]), atol=1e-5)


def test_one_environment_at_a_time_is_all_at_once():
    data, buffer = window(), plain()
    for t in range(T):
        for env in np.random.default_rng(t).permutation(N):
            one = {name: array[t, env] for name, array in data.items()}
            end = one["final_values"] if one["truncated"] else None
            buffer.add_one(
                t, env, one["obs"], one["actions"], one["rewards"], one["values"], one["log_probs"],
                one["terminated"], one["truncated"], end,
            )  # fmt: skip
    expected = filled(plain(), data).rollout
    for mine, theirs in zip(buffer.rollout[:-1], expected[:-1], strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_final_values_are_read_only_where_an_episode_was_cut():
    data = window()
    sparse = dict(data, final_values=np.where(data["truncated"], data["final_values"], np.float32(np.nan)))
    rollout = filled(plain(), sparse).rollout
    np.testing.assert_array_equal(rollout.bootstrap_value, np.where(data["truncated"], data["final_values"], 0.0).T)


def test_a_termination_on_the_step_of_the_limit_needs_no_final_value():
    step = step_of(window(), 0)
    over = np.ones(N, bool)
    plain().add(0, **{**step, "terminated": over, "truncated": over, "final_values": None})


def test_a_rollout_is_a_value():
    buffer = filled(plain(), window())
    rollout = buffer.rollout
    rollout.obs[:] = 7.0
    assert not (buffer.rollout.obs == 7.0).any()
    before = buffer.rollout
    buffer.reset()
    filled(buffer, window(1))
    np.testing.assert_array_equal(before.obs, np.swapaxes(window()["obs"], 0, 1))


def test_what_was_given_may_change_afterwards():
    buffer, data = plain(), window()
    for t in range(T):
        step = step_of({name: array.copy() for name, array in data.items()}, t)
        buffer.add(t, **step)
        for array in step.values():
            array[...] = 0
    np.testing.assert_array_equal(buffer.rollout.obs, np.swapaxes(data["obs"], 0, 1))


def first_memory(buffer):
    return buffer.rollout.memory.hidden[:, 0].tolist(), buffer.rollout.memory.cell[:, 0].tolist()


def test_the_first_memory_is_the_one_that_entered_step_0():
    buffer = recurrent()
    for t in range(T):
        buffer.add_recurrent_state(t, ALL, *state(t + 1.0, N, H))
        buffer.add(t, **step_of(window(), t))
    assert first_memory(buffer) == ([1.0] * N, [-1.0] * N)
    assert buffer.states.hidden[0, :, 0].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0]


def test_states_may_be_recorded_after_the_step_and_one_by_one():
    buffer = recurrent()
    for t in range(T):
        buffer.add(t, **step_of(window(), t))
        for env in range(N):
            buffer.add_recurrent_state(t, env, *state(env + 1.0, H))
    assert first_memory(buffer)[0] == [1.0, 2.0, 3.0]


def test_without_a_record_the_memory_is_empty_or_what_the_last_window_left():
    buffer, data = recurrent(), window()
    assert first_memory(filled(buffer, data))[0] == [0.0] * N
    given = state(3.0, N, H)
    buffer.seed_warm_start(T - 1, *given)
    given[0][:] = 0.0
    assert first_memory(buffer)[0] == [0.0] * N
    buffer.reset()
    assert first_memory(filled(buffer, data)) == ([3.0] * N, [-3.0] * N)
    buffer.reset()
    assert first_memory(filled(buffer, data))[0] == [0.0] * N


def test_a_record_overrules_the_warm_start():
    buffer, data = recurrent(), window()
    filled(buffer, data).seed_warm_start(T - 1, *state(3.0, N, H))
    buffer.reset()
    buffer.add_recurrent_state(0, ALL, *state(0.0, N, H))
    assert first_memory(filled(buffer, data))[0] == [0.0] * N


def test_half_a_record_is_refused():
    buffer = recurrent()
    buffer.add_recurrent_state(0, 1, *state(1.0, H))
    filled(buffer, window())
    with pytest.raises(ValueError, match=r"recorded for environments \[1\] only"):
        _ = buffer.rollout


def changed(**other):
    return {**step_of(window(), 0), **other}


BAD_STEPS = [
    (changed(obs=np.ones((N, D + 1))), ValueError, r"obs has shape \(3, 3\): expected \(3, 2\)"),
    (changed(obs=np.ones(D)), ValueError, "obs has shape"),
    (changed(obs=np.ones((1, D))), ValueError, "obs has shape"),
    (changed(obs=np.ones((N, D), int)), TypeError, "obs has dtype int64"),
    (changed(obs=np.full((N, D), np.nan)), ValueError, r"obs\[0, 0\] is nan.*finite"),
    (changed(actions=np.ones(N)), TypeError, "actions has dtype float64.*integers"),
    (changed(actions=np.ones((N, 1), int)), ValueError, "actions has shape"),
    (changed(actions=np.int64([0, -1, 0])), ValueError, r"actions\[1\] is -1"),
    (changed(rewards=1.0), ValueError, r"rewards has shape \(\)"),
    (changed(rewards=np.float32([0, np.inf, 0])), ValueError, r"rewards\[1\] is inf"),
    (changed(values=np.float32([0, 0, np.nan])), ValueError, r"values\[2\] is nan"),
    (changed(values=np.ones((N, 1))), ValueError, "values has shape"),
    (changed(log_probs=np.float32([-np.inf, 0, 0])), ValueError, r"log_probs\[0\] is -inf"),
    (changed(terminated=np.zeros(N)), TypeError, "terminated has dtype float64.*booleans"),
    (changed(truncated=np.zeros(N, int)), TypeError, "truncated has dtype int64.*booleans"),
    (changed(truncated=np.bool_([0, 1, 0]), final_values=None), ValueError, r"final_values are missing.*\[1\].*reset"),
    (changed(truncated=np.bool_([1, 0, 0]), final_values=np.full(N, np.nan)), ValueError, r"are \[nan\].*\[0\]"),
    (changed(truncated=np.bool_([1, 0, 0]), final_values=np.ones(1)), ValueError, "final_values has shape"),
]


@pytest.mark.parametrize(("step", "error", "message"), BAD_STEPS, ids=[message for _, _, message in BAD_STEPS])
def test_a_bad_step_is_refused_and_leaves_no_trace(step, error, message):
    buffer = plain()
    with pytest.raises(error, match=message):
        buffer.add(0, **step)
    rollout = filled(buffer, window()).rollout
    np.testing.assert_array_equal(rollout.obs, filled(plain(), window()).rollout.obs)


def started(n_steps, build=plain):
    buffer = build()
    for t in range(n_steps):
        buffer.add(t, **step_of(window(), t))
    return buffer


def one(t, env):
    step = {name: array[0, env] for name, array in window().items()}
    return (t, env, *step.values())


def add_one_then_add():
    buffer = plain()
    buffer.add_one(*one(0, 1))
    buffer.add(0, **step_of(window(), 0))


def add_one_twice():
    buffer = plain()
    buffer.add_one(*one(0, 1))
    buffer.add_one(*one(0, 1))


def next_step(t):
    return step_of(window(), 0) | {"step": t}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: started(2).add(**next_step(3)), "step 3 is out of order: 2 comes next"),
        (lambda: started(2).add(**next_step(1)), "step 1 is out of order: 2 comes next"),
        (lambda: started(T).add(**next_step(T)), r"step 5 is past the end.*call reset\(\)"),
        (add_one_then_add, r"begun with add_one\(\) for environments \[1\]"),
        (add_one_twice, "environment 1 was already given"),
        (lambda: started(2).compute_advantages(np.zeros(N), 0.9, 0.9), r"2 of 5 steps"),
        (lambda: started(T).compute_advantages(np.zeros(N + 1), 0.9, 0.9), r"last_values has shape \(4,\)"),
        (lambda: started(T).compute_advantages(np.full(N, np.nan), 0.9, 0.9), r"last_values\[0\] is nan"),
        (lambda: started(T).compute_advantages(np.zeros(N), 1.5, 0.9), "gamma is 1.5"),
        (lambda: started(T).compute_advantages(np.zeros(N), 0.9, -0.1), "gae_lambda is -0.1"),
        (lambda: started(T).advantages, "call compute_advantages"),
        (lambda: started(2).rollout, "2 of 5 steps"),
        (lambda: RolloutBuffer(0, N, D), "num_steps is 0"),
        (lambda: started(2, recurrent).add_recurrent_state(0, ALL, *state(1.0, N, H)), "step 0 is out of order"),
        (lambda: started(T, recurrent).add_recurrent_state(T, ALL, *state(1.0, N, H)), "step 5 is out of order"),
        (lambda: recurrent().add_recurrent_state(-1, ALL, *state(1.0, N, H)), "step -1 is out of order"),
        (lambda: recurrent().add_recurrent_state(0, ALL, *state(1.0, N - 1, H)), r"h has shape \(2, 4\)"),
        (lambda: recurrent().add_recurrent_state(0, ALL, *state(1.0, H)), r"h has shape \(4,\)"),
        (lambda: recurrent().add_recurrent_state(0, 1, *state(1.0, 1, H)), r"h has shape \(1, 4\)"),
        (lambda: recurrent().add_recurrent_state(0, 1, *state(np.nan, H)), r"h\[0\] is nan"),
        (lambda: started(2, recurrent).seed_warm_start(T - 1, *state(1.0, N, H)), "2 of 5 steps"),
        (lambda: started(T, recurrent).seed_warm_start(0, *state(1.0, N, H)), "leaves step 4"),
        (lambda: started(T, recurrent).seed_warm_start(T - 1, *state(1.0, N + 1, H)), r"h has shape \(4, 4\)"),
    ],
)
def test_calls_out_of_order_or_of_another_size_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("step", [0.0, True, "0", None])
def test_a_step_is_an_integer(step):
    calls = [
        lambda: plain().add(**(step_of(window(), 0) | {"step": step})),
        lambda: recurrent().add_recurrent_state(step, ALL, *state(1.0, N, H)),
        lambda: started(T, recurrent).seed_warm_start(step, *state(1.0, N, H)),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="step is .*expected an integer"):
            call()


def test_an_environment_that_is_not_there_is_refused():
    with pytest.raises(IndexError, match="no environment 3"):
        recurrent().add_recurrent_state(0, N, *state(1.0, H))
