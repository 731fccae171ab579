"""The replay as markup: one block per condition, one panel per arm, controls that the script brings to life."""

import html

from thrust_rl.experiment.report.data import Condition, Result
from thrust_rl.experiment.report.replay import COORDINATES, Episode, episodes
from thrust_rl.experiment.report.replay_svg import hatch, scene_svg, strips_svg

SPEEDS = ((5, "5 steps/s"), (15, "15 steps/s"), (50, "50 steps/s"))
DEFAULT_SPEED = 15

INTRODUCTION = (
    "The first evaluation episode of one training seed per arm, actions drawn as in training. Every arm starts from the"
    " same state and meets the same blanks. The strips are what the agent was given, hatched where that was nothing."
)
SCENE_NOTE = "The picture is the true state; it is drawn faintly where the frame was blank."


def replay_section(result: Result) -> str:
    """Empty where nothing was recorded."""
    blocks: list[str] = []
    drawable = False
    for task in result.tasks:
        for condition in task.conditions:
            found = episodes(condition)
            if found:
                drawable = drawable or any(episode.state for episode in found)
                blocks.append(_block(condition, found, len(blocks)))
    if not blocks:
        return ""
    note = f"{INTRODUCTION} {SCENE_NOTE}" if drawable else INTRODUCTION
    script = '<p class="noscript">Without scripts this shows the first frame and the whole strips.</p>'
    return f"<section><h2>What they saw and did</h2>{hatch()}<p>{note}</p>{script}{''.join(blocks)}</section>"


def _block(condition: Condition, found: list[Episode], index: int) -> str:
    frames = max(episode.frames for episode in found)
    panels = "".join(_panel(episode, frames, f"replay{index}-{i}") for i, episode in enumerate(found))
    title = html.escape(condition.title)
    options = "".join(
        f'<option value="{speed}"{" selected" if speed == DEFAULT_SPEED else ""}>{text}</option>'
        for speed, text in SPEEDS
    )
    controls = (
        '<div class="controls"><button type="button" data-play>Play</button>'
        f'<input type="range" min="0" max="{frames}" value="0" aria-label="Step of the episodes on {title}">'
        f'<output>step 0 of {frames}</output><select aria-label="Speed">{options}</select></div>'
    )
    body = f'<div data-replay="{index}">{controls}<div class="panels">{panels}</div></div>'
    opened = "" if condition.name == "twin" else " open"
    return f"<details{opened}><summary>{title}</summary>{body}</details>"


def _panel(episode: Episode, frames: int, name: str) -> str:
    scene = scene_svg(episode, name=f"{name}-scene") if episode.state else ""
    strips = strips_svg(episode, frames=frames, name=f"{name}-strips")
    hidden = len(episode.obs[0]) - COORDINATES if episode.obs else 0
    note = f"<p><small>The first {COORDINATES} of {hidden + COORDINATES} numbers.</small></p>" if hidden > 0 else ""
    if episode.obs is None:
        note = "<p><small>The observation is too large to record; the strip shows its blanks.</small></p>"
    seed = "" if episode.seed is None else f", seed {episode.seed}"
    total = f"{episode.returns[-1]:g}"
    return (
        f'<div class="panel"><h4>{html.escape(episode.arm)}{seed}: return {total} in {episode.frames} steps</h4>'
        f"{scene}{_readout(episode)}{strips}{note}</div>"
    )


def _readout(episode: Episode) -> str:
    """Numbers of the present frame."""
    seen = "blank" if episode.blank[0] else "seen"
    action = html.escape(episode.actions[0]) or "none"
    return (
        f'<div class="readout"><span>step <b data-step>0</b></span><span>frame <b data-seen>{seen}</b></span>'
        f"<span>action <b data-action>{action}</b></span>"
        f"<span>return so far <b data-total>{episode.returns[0]:g}</b></span></div>"
    )
