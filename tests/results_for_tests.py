"""Comparisons as `result.json` holds them, with made-up runs and the library's own statistics of them."""

import math

import numpy as np

from thrust_rl.config import ArmConfig, TrainConfig, arm_from
from thrust_rl.experiment.comparison import ArmResult, Comparison, ConditionResult, TaskResult
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import EvalConfig, SeedResult, area_under

PARAMS = {"lstm": 17_859, "mlp": 17_539, "gru": 13_443}
REACHED = {"lstm": 455.0, "mlp": 160.0, "gru": 440.0}
VERSIONS = {"python": "3.11.2", "thrust-rl": "0.1.0", "jax": "0.10.2"}
MACHINE = {"cores": 2, "platform": "Linux-x86_64", "processor": "x86_64"}
COMMAND = "thrust compare 'FlickeringCartPole-v0' --seeds 10 --twin"


def comparison(
    *,
    envs=("FlickeringCartPole-v0",),
    arms=("lstm", "mlp"),
    seeds=10,
    twin=False,
    status="complete",
    command=COMMAND,
    points=245,
    shift=0.0,
    finished=None,
    recorded=True,
    name=None,
):
    """`finished`: how many seeds of each arm; `points`: of a learning curve, 0 is none; `shift`: added to returns."""
    specs = [EnvSpec(env).completed() if isinstance(env, str) else env for env in envs]
    tasks = []
    for spec in specs:
        conditions = [("task", spec)] + ([("twin", EnvSpec(spec.name, spec.params, twin=True))] if twin else [])
        made = tuple(
            ConditionResult(
                kind,
                env,
                tuple(
                    arm_result(
                        arm,
                        range(seeds if finished is None else finished[arm_config(arm).name]),
                        reached=(495.0 if kind == "twin" else None),
                        points=points,
                        shift=shift,
                        recorded=recorded,
                    )
                    for arm in arms
                ),
            )
            for kind, env in conditions
        )
        tasks.append(TaskResult(name or spec.label, made))
    return Comparison(
        tasks=tuple(tasks),
        config=TrainConfig(),
        seeds=tuple(range(seeds)),
        status=status,
        evaluation=EvalConfig(),
        command=command,
        versions=VERSIONS,
        machine=MACHINE,
        seconds=123.4,
    )


def arm_config(arm):
    return arm if isinstance(arm, ArmConfig) else arm_from(arm)


def arm_result(arm, seeds, *, reached=None, points=245, shift=0.0, recorded=True):
    config = arm_config(arm)
    level = reached or REACHED.get(config.name, 250.0)
    made = tuple(
        seed_result(config.name, seed, level, points, shift, recording(config.name, seed, level) if record else None)
        for seed in seeds
        for record in [recorded and seed == min(seeds)]
    )
    return ArmResult(config, config.learning_rate, PARAMS.get(config.name, 17_859), made)


def seed_result(name, seed, level, points, shift, kept):
    rng = np.random.default_rng([seed, len(name), int(level)])
    steps = tuple(2048 * (i + 1) for i in range(points))
    rise = 20 + (level - 20) / (1 + np.exp(-(np.arange(points) - points * 0.3) / (points * 0.08 + 1e-9)))
    noise = np.cumsum(rng.normal(0, 0.012 * level, points)) * 0.4 + rng.normal(0, 0.02 * level)
    returns = tuple((np.clip(rise + noise, 8, 500) + shift).round(4).tolist())
    mean = float(np.clip(level + rng.normal(0, 0.045 * level), 9, 500))
    final, best = (returns[-1], max(returns)) if returns else (None, None)
    return SeedResult(
        seed=seed,
        params=PARAMS.get(name, 17_859),
        final=final,
        best=best,
        auc=area_under(steps, returns),
        curve_steps=steps,
        curve_mean_return=returns,
        episodes=3210 if points else 0,
        steps=2048 * max(points, 1),
        steps_per_second=77_944.4,
        seconds_compile=2.5,
        seconds_run=6.4,
        evaluation={
            "sampled": played(mean + shift, rng),
            "greedy": played(min(mean * 1.02, 500.0) + shift, rng),
        },
        recording=kept,
    )


def played(mean, rng, episodes=20):
    returns = mean + rng.normal(0, 30, episodes)
    returns = (returns - returns.mean() + mean).round(4)
    return {
        "mean_return": round(float(returns.mean()), 4),
        "returns": returns.tolist(),
        "lengths": [200] * episodes,
        "cut": 0,
    }


def recording(name, seed, level, *, drawable=True, coordinates=4):
    """An episode of `level` steps in which the pole sways; half the frames are blank unless the level is the twin's."""
    frames = int(min(level, 500))
    blank = np.random.default_rng(7).random(500)[:frames] < (0.0 if level == 495.0 else 0.5)
    t = np.arange(frames)
    sway = 0.01 + 0.18 * (t / frames) ** 3
    states = np.stack(
        [0.9 * np.sin(t / 60), 0.3 * np.cos(t / 60), sway * np.sin(t / 7), sway * np.cos(t / 7)], axis=1
    ).round(4)
    seen = np.where(blank[:, None], 0.0, np.resize(states, (frames, coordinates)))
    return {
        "seed": seed,
        "observations": seen.tolist(),
        "blanks": blank.tolist(),
        "actions": [int(math.sin(i / 7) > 0) for i in t],
        "rewards": [1.0] * frames,
        "states": states.tolist() if drawable else None,
    }
