"""Comparisons made up for tests, without training anything."""

from thrust_rl.config import ArmConfig, TrainConfig, arm_from
from thrust_rl.experiment.comparison import ArmResult, Comparison, ConditionResult, TaskResult
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.jobs import SeedResult

LSTM = (422.0, 487.0, 473.0, 456.0, 447.0, 481.0)
MLP = (167.0, 169.0, 138.0, 147.0, 176.0, 155.0)


def seed_result(seed, score, *, final=None, recorded=False, restarts=0):
    final = score if final is None else final
    episode = {"observations": [[0.5]], "blanks": [False], "actions": [1], "rewards": [1.0], "states": None}
    return SeedResult(
        seed=seed,
        params=17539,
        final=final,
        best=final + 10.0,
        auc=final - 10.0,
        curve_steps=(128, 256),
        curve_mean_return=(final + 10.0, final),
        episodes=3,
        steps=256,
        steps_per_second=1234.4,
        seconds_compile=0.5,
        seconds_run=0.25,
        evaluation={"sampled": played(score), "greedy": played(score + 2.0)},
        env_restarts=restarts,
        recording={"seed": seed, **episode} if recorded else None,
    )


def played(score, episodes=100):
    """As many as are evaluated by default."""
    half = episodes // 2
    return {"mean_return": score, "returns": [score - 1.0, score + 1.0] * half, "lengths": [3, 4] * half, "cut": 0}


def arm_result(arm, scores, **options):
    """`scores`: by seed, or in the order of the seeds."""
    by_seed = scores if isinstance(scores, dict) else dict(enumerate(scores))
    config = arm if isinstance(arm, ArmConfig) else arm_from(arm)
    seeds = tuple(
        seed_result(seed, score, recorded=index == 0, **options) for index, (seed, score) in enumerate(by_seed.items())
    )
    return ArmResult(config, config.learning_rate, 17539, seeds)


def condition(scores, *, env="FlickeringCartPole-v0", twin=False, **options):
    """`scores`: by arm."""
    arms = tuple(arm_result(arm, each, **options) for arm, each in scores.items())
    return ConditionResult("twin" if twin else "task", EnvSpec(env, twin=twin), arms)


def comparison(scores, *, twin=None, tasks=("FlickeringCartPole-v0",), status="complete", seeds=None, **options):
    """The same scores on every task; `twin`: those on the twin, if there is one."""
    results = []
    for env in tasks:
        conditions = [condition(scores, env=env, **options)]
        if twin is not None:
            conditions.append(condition(twin, env=env, twin=True, **options))
        results.append(TaskResult(env, tuple(conditions)))
    most = max((len(each) for each in scores.values()), default=0)
    return Comparison(tuple(results), TrainConfig(), tuple(seeds or range(most)), status, versions={"python": "3.11.7"})
