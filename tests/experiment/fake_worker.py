"""A worker that speaks the protocol of `thrust_rl.experiment.worker` without training anything; started as a script.

`--trouble` happens in the job called `--at`, in its first `--times` attempts, which are counted in the log: a line of
JSON for every job that was started, `{pid, time, label, nproc, device}`.
"""

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path

TROUBLES = ("none", "hang", "hang-later", "hang-first", "die", "complain-and-die", "error", "garbage", "slow")


def final_of(arm, seed):
    return 10.0 * seed + len(arm)


def send(**event):
    print(json.dumps(event), flush=True)


def played(score, episodes):
    return {"mean_return": score, "returns": [score] * episodes, "lengths": [3] * episodes, "cut": 0}


def result_of(arm, seed, recorded=None, episodes=2):
    final = final_of(arm, seed)
    episode = {"observations": [[0.5]], "blanks": [False], "actions": [1], "rewards": [1.0], "states": None}
    return {
        "seed": seed,
        "params": 7,
        "final": final,
        "best": final + 1.0,
        "auc": final + 0.5,
        "curve_steps": [128, 256],
        "curve_mean_return": [final + 1.0, final],
        "episodes": 3,
        "steps": 256,
        "steps_per_second": 1000.0,
        "seconds_compile": 0.5,
        "seconds_run": 0.25,
        "evaluation": {"sampled": played(final, episodes), "greedy": played(final + 2.0, episodes)},
        "env_restarts": 0,
        "recording": {"seed": seed, **episode} if seed == recorded else None,
    }


def misbehave(trouble):
    match trouble:
        case "hang":
            time.sleep(3600)
        case "slow":
            time.sleep(1.0)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "complain-and-die":
            sys.exit("first line\nRESOURCE_EXHAUSTED: no memory")
        case "error":
            send(event="error", message="non-finite loss at update 3")
        case "garbage":
            print('a stray line\n{"half": \n5\n[]\n{}\nnull', flush=True)
            os.write(1, b"\xff\xfe\n")


def serve(job, options, attempts):
    arm, seeds = job["arm"]["name"], job["seeds"]
    label = f"{arm} seed {', '.join(map(str, seeds))}" + (f" on {job['where']}" if job["where"] else "")
    attempts[label] = attempts.get(label, 0) + 1
    told = {"nproc": os.environ.get("NPROC"), "device": os.environ.get("CUDA_VISIBLE_DEVICES")}
    record = {"pid": os.getpid(), "time": time.monotonic(), "label": label, **told}
    with options.log.open("a") as log:
        log.write(json.dumps(record) + "\n")
    in_trouble = options.at in (label, "*") and attempts[label] <= options.times
    if in_trouble:
        misbehave(options.trouble)
        if options.trouble == "error":
            return
    for beat in range(options.beats):
        time.sleep(options.pause * options.growth**beat)
        progress = {"steps": 128 * (beat + 1), "total_steps": 256, "mean_return": None, "seconds": 0.1}
        send(event="progress", seeds=seeds, **progress)
        if in_trouble and options.trouble == "hang-later":
            time.sleep(3600)
    send(event="result", seeds=[result_of(arm, seed, job["recorded"], job["evaluation"]["episodes"]) for seed in seeds])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--devices", type=int, default=1, help="that there are; one is left where one is named")
    parser.add_argument("--beats", type=int, default=2)
    parser.add_argument("--pause", type=float, default=0.01)
    parser.add_argument("--growth", type=float, default=1.0, help="every pause is this many times the one before")
    parser.add_argument("--trouble", choices=TROUBLES, default="none")
    parser.add_argument("--at", default="*")
    parser.add_argument("--times", type=int, default=10**9)
    options = parser.parse_args()
    started = options.log.with_suffix(".starts")
    with started.open("a") as starts:
        starts.write(f"{os.getpid()}\n")
    if options.trouble == "hang-first" and len(started.read_text().split()) <= options.times:
        time.sleep(3600)
    devices = 1 if "CUDA_VISIBLE_DEVICES" in os.environ else options.devices
    send(event="hello", backend=options.backend, devices=devices)
    for line in sys.stdin:
        lines = options.log.read_text().splitlines() if options.log.exists() else []
        labels = [json.loads(record)["label"] for record in lines]
        serve(json.loads(line), options, {label: labels.count(label) for label in labels})


if __name__ == "__main__":
    main()
