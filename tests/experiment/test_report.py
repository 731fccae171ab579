"""The report says what the data say, opens offline, takes any text for text, and copes with what is missing."""

import dataclasses
import html.parser
import json
import re
import shutil
import subprocess

import pytest

from results_for_tests import comparison, recording
from thrust_rl.config import ArmConfig, ConfigError
from thrust_rl.experiment.environment import EnvSpec
from thrust_rl.experiment.report import write_report
from thrust_rl.experiment.report.curves import band
from thrust_rl.experiment.report.data import read
from thrust_rl.experiment.report.markdown import report_markdown, text
from thrust_rl.experiment.report.page import report_html
from thrust_rl.experiment.report.replay import embedded
from thrust_rl.experiment.report.svg import fitted, ticks
from thrust_rl.experiment.verdict import decimals

TASKS = ("FlickeringCartPole-v0", "MaskedCartPole-v0", "CartPole-v1")
NASTY = "</script><b>&\"'`|*_[x](javascript:alert(1))"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
VOID = {"meta", "input", "br", "link", "img"}


class Page(html.parser.HTMLParser):
    """What a browser would see: elements with attributes, rows of tables, text by element; and that it nests."""

    def __init__(self, source):
        super().__init__()
        self.elements, self.open, self.texts, self.rows = [], [], [], []
        self.feed(source)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((tuple(self.open), data))
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    def text(self, tag):
        return "".join(data for inside, data in self.texts if tag in inside)


def page_of(made):
    return Page(report_html(read(made)))


@pytest.fixture(scope="module")
def with_twin():
    return comparison(twin=True)


@pytest.fixture(scope="module")
def source(with_twin):
    return report_html(read(with_twin))


@pytest.fixture(scope="module")
def page(source):
    return Page(source)


@pytest.fixture(scope="module")
def three():
    return comparison(envs=TASKS, arms=("lstm", "mlp", "gru"), seeds=3, points=9)


def long_names():
    arms = [ArmConfig(f"an arm with a very long name {'x' * 48} {i}", cell="lstm") for i in range(2)]
    return comparison(arms=arms, seeds=5, points=9, name="a task " + "y" * 200)


MADE = {
    "one arm": lambda: comparison(arms=("lstm",), seeds=5, points=9),
    "one seed": lambda: comparison(seeds=1, points=9),
    "two seeds and a twin": lambda: comparison(seeds=2, twin=True, points=9),
    "interrupted": lambda: comparison(seeds=6, finished={"lstm": 4, "mlp": 0}, points=9, status="interrupted"),
    "interrupted, nothing finished": lambda: comparison(finished={"lstm": 0, "mlp": 0}, status="interrupted"),
    "no finished episode": lambda: comparison(seeds=2, points=0),
    "one point": lambda: comparison(seeds=2, points=1),
    "negative returns": lambda: comparison(seeds=5, shift=-1500.0, points=9, envs=[EnvSpec("gymnasium:Pendulum-v1")]),
    "very long names": long_names,
    "nine arms": lambda: comparison(arms=[ArmConfig(f"arm{i}") for i in range(9)], seeds=1, recorded=False),
    "from Python": lambda: comparison(seeds=2, points=9, command=None),
}


@pytest.mark.parametrize("name", MADE)
def test_every_kind_of_result_gives_all_files(tmp_path, name):
    made = MADE[name]()
    written = write_report(made, tmp_path / "new" / "folder")
    assert [path.name for path in written] == [
        "report.html",
        "report.md",
        "curve.png",
        "curve.svg",
        "evaluation.png",
        "evaluation.svg",
    ]
    assert sorted(path.name for path in written[0].parent.iterdir()) == sorted(path.name for path in written)
    page = Page(written[0].read_text())
    assert page.open == []
    assert not re.search(r"\b(nan|inf|None|NaN)\b", page.text("body"))
    summary = written[1].read_text()
    assert made.sentences[0].partition(": ")[0] in page.text("header")
    assert text(made.sentences[0]) in summary
    for arm in made.arms:
        assert any(row[:1] == [arm.name] for row in page.rows)


def test_several_tasks_give_a_profile_and_a_section_each(tmp_path, three):
    written = write_report(three, tmp_path)
    assert {"profile.png", "profile.svg"} < {path.name for path in written}
    page = Page(written[0].read_text())
    for task in three.tasks:
        assert ("header", task.label) in [(tag, data) for inside, data in page.texts for tag in inside]
    summary = written[1].read_text()
    assert all(f"## {label}\n" in summary for label in TASKS)
    assert "![Performance profile](profile.png)" in summary


def test_several_tasks_are_one_table_before_their_details():
    made = comparison(envs=TASKS, arms=("lstm", "mlp", "gru"), seeds=8, points=9)
    data = made.to_dict()
    rows, lines = page_of(made).rows, [re.sub(r"\\", "", line) for line in _tables(made)]
    assert rows[0] == ["task", "lstm", "mlp", "gru", "lstm minus mlp", "p (Holm)", "verdict"]
    for i, task in enumerate(data["tasks"]):
        verdict, arms = task["verdict"], task["conditions"][0]["arms"]
        cells = [task["label"]]
        for arm in arms.values():
            mean = arm["summary"]["mean"]
            ends = [numbers(mean["interval"][end], 1) for end in ("low", "high")]
            cells.append(f"{numbers(mean['value'], 1)} [{', '.join(ends)}]")
        ends = [numbers(verdict["interval"][end], 1, sign="+") for end in ("low", "high")]
        cells.append(f"{numbers(verdict['effect'], 1, sign='+')} [{', '.join(ends)}]")
        cells += [f"{verdict['p_value']:.2g}", verdict["kind"]]
        assert rows[1 + i] == cells
        assert lines[2 + i] == f"| {' | '.join(cells)} |"
    summary = report_markdown(read(made), pictures=["curve.png"])
    places = [summary.index(part) for part in ("All tasks:", "Normalized scores over", "curve.png", f"## {TASKS[0]}\n")]
    assert places == sorted(places)


def test_the_overview_withholds_what_verdicts_withhold():
    few = page_of(comparison(envs=TASKS, seeds=3, points=9)).rows[1]
    assert few[-2:] == ["–", "withheld: 3 seeds"] and not any("[" in cell for cell in few)
    broken = comparison(envs=TASKS, finished={"lstm": 6, "mlp": 0}, seeds=6, points=9, status="interrupted")
    assert page_of(broken).rows[1][2:] == ["–", "–", "–", "–"]
    assert "All tasks" not in report_markdown(read(comparison(seeds=6, points=9)), pictures=[])


def test_the_verdict_comes_first_and_word_for_word(with_twin, page):
    order = [tag for tag, _ in page.elements if tag in ("header", "main", "svg")]
    assert order[0] == "header" and order[1] == "main"
    assert with_twin.sentence in page.text("header")
    first = report_markdown(read(with_twin), pictures=[]).splitlines()[2]
    assert first == f"**{text(with_twin.sentence)}**"


def test_the_page_asks_for_nothing_from_elsewhere(source, page):
    for tag, attributes in page.elements:
        assert tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not {"src", "href", "srcset", "action", "data", "xlink:href"} & set(attributes), tag
    assert not re.search(r"https?:|//[a-z]+\.|@import", re.sub(r"\A.*?</style>", "", source, flags=re.S).lower())
    assert set(re.findall(r"url\(\s*['\"]?(.)", source)) == {"#"}
    assert not re.search(r"@import|https?:", re.search(r"<style>(.*?)</style>", source, re.S)[1])
    [policy] = [attributes["content"] for tag, attributes in page.elements if "http-equiv" in attributes]
    assert "default-src 'none'" in policy


def test_ids_are_unique_and_every_reference_finds_one(page):
    elements = page.elements
    ids = [attributes["id"] for _, attributes in elements if "id" in attributes]
    assert len(set(ids)) == len(ids)
    used = []
    for _, attributes in elements:
        used += attributes.get("aria-labelledby", "").split()
        used += [attributes["for"]] if "for" in attributes else []
        used += re.findall(r"url\(#([^)]+)\)", " ".join(filter(None, attributes.values())))
    assert used and set(used) <= set(ids)


def test_plots_have_titles_and_tables_have_headers(page):
    plots = [attributes for tag, attributes in page.elements if tag == "svg" and attributes.get("role") == "img"]
    hidden = [attributes for tag, attributes in page.elements if tag == "svg" and "aria-hidden" in attributes]
    assert len(plots) + len(hidden) == sum(tag == "svg" for tag, _ in page.elements)
    titles = [inside for inside, _ in page.texts if inside[-2:] == ("svg", "title")]
    assert len(titles) == len(plots) > 5
    headers = [attributes.get("scope") for tag, attributes in page.elements if tag == "th"]
    assert set(headers) == {"row", "col"}
    assert sum(tag == "table" for tag, _ in page.elements) == sum(tag == "caption" for tag, _ in page.elements)


def test_any_text_is_shown_and_nothing_of_it_is_markup():
    tame = "x" * len(NASTY)  # made-up returns depend on an arm's name by its length
    made, plain = (
        comparison(arms=[ArmConfig(name, cell="lstm"), "mlp"], seeds=5, command=f"thrust {name}", name=name, points=9)
        for name in (NASTY, tame)
    )
    page, other = page_of(made), page_of(plain)
    assert [tag for tag, _ in page.elements] == [tag for tag, _ in other.elements]
    assert f"thrust {NASTY}" == page.text("pre")
    assert any(row[0] == NASTY for row in page.rows)
    for _, attributes in page.elements:
        assert not any(name.startswith("on") for name in attributes)
    summary = report_markdown(read(made), pictures=[])
    cells = [re.split(r"(?<!\\)\|", line) for line in summary.splitlines() if line.startswith("|")]
    widths = {len(row) for row in cells}
    assert widths == {len(re.split(r"(?<!\\)\|", line)) for line in _tables(plain)}
    outside = summary.replace(f"thrust {NASTY}", "")
    assert "<b>" not in outside and "](javascript" not in outside.replace("\\](", "")


def _tables(made):
    return [line for line in report_markdown(read(made), pictures=[]).splitlines() if line.startswith("|")]


def test_markdown_text_keeps_plain_words_and_a_command_its_backticks():
    assert text("total_timesteps 0.5 [1, 2] a-b") == "total_timesteps 0.5 [1, 2] a-b"
    assert text("a|b\n<i> _c_ `d`") == r"a\|b &lt;i&gt; \_c\_ \`d\`"
    summary = report_markdown(read(comparison(seeds=1, command="echo ```x```")), pictures=[])
    assert "````sh\necho ```x```\n````" in summary


def numbers(value, places, *, sign=""):
    return f"{value:{sign}z.{places}f}"


def test_tables_hold_the_numbers_of_the_data(with_twin, page):
    data = with_twin.to_dict()
    [task] = data["tasks"]
    places = decimals(task["verdict"]["min_effect"])
    rows = page.rows
    lines = [re.sub(r"\\", "", line) for line in _tables(with_twin)]
    for condition in task["conditions"]:
        for name, arm in condition["arms"].items():
            cells = [name, f"{arm['params']:,}", "10"]
            for field in ("mean", "median", "iqm"):
                one = arm["summary"][field]
                ends = [numbers(one["interval"][end], places) for end in ("low", "high")]
                cells.append(f"{numbers(one['value'], places)} [{', '.join(ends)}]")
            cells += [numbers(arm["mean"][field], places) for field in ("greedy", "final", "best", "auc")]
            assert cells in rows
            assert f"| {' | '.join(cells)} |" in lines
            for seed in arm["seeds"]:
                scores = [seed["evaluation"][mode]["mean_return"] for mode in ("sampled", "greedy")]
                measured = [*scores, seed["final"], seed["best"], seed["auc"]]
                counts = [f"{seed['episodes']:,}", f"{seed['steps_per_second']:,.0f}"]
                assert [name, str(seed["seed"]), *(numbers(each, places) for each in measured), *counts] in rows


def test_effects_are_those_of_the_data(with_twin, page):
    [task] = with_twin.to_dict()["tasks"]
    rows, effects = page.rows, task["twin_effects"]
    for key, title in (("task", "on the task"), ("twin", "on the twin"), ("due_to_hiding", "what is hidden")):
        one = effects[key]
        ends = [numbers(one["interval"][end], 1, sign="+") for end in ("low", "high")]
        cells = [numbers(one["mean"], 1, sign="+"), " to ".join(ends), f"{one['p_value']:.2g}", f"{one['ahead']} of 10"]
        assert [row[1:] for row in rows if row[0].endswith(title)] == [cells]
    said = page.text("main")
    assert all(sentence in said for sentence in effects["sentences"])
    [contrast] = task["contrasts"]
    better = contrast["improvement"]
    shown = f"{better['value']:.2f} [{better['interval']['low']:.2f}, {better['interval']['high']:.2f}]"
    assert any(shown in line for line in _tables(with_twin))


def test_too_few_seeds_get_numbers_without_intervals():
    page = page_of(comparison(seeds=4, twin=True, points=9))
    assert [row[2] for row in page.rows if row[0].startswith(("Memory", "Their"))] == ["–"] * 3
    assert not any("[" in cell for row in page.rows if len(row) > 2 for cell in row)
    assert page.text("figcaption").count("Dash: mean.") == 2
    assert page.text("figcaption").count("too few for an interval") == 2


def with_twin_of(name, *observe):
    """A comparison on an environment behind observation models, and on the same without them."""
    made = comparison(envs=(EnvSpec(name, observe=observe),), twin=True, points=9)
    task = made.tasks[0]
    twin = dataclasses.replace(task.conditions[1], environment=EnvSpec(name, observe=observe, twin=True))
    return dataclasses.replace(made, tasks=(dataclasses.replace(task, conditions=(task.task, twin)),))


def test_a_twin_that_may_hide_something_is_not_called_fully_observable():
    made = with_twin_of("my_module:MyEnv", "mask:1", "noise:0.1")
    note = (
        "The twin of my_module:MyEnv|mask:1|noise:0.1 is it without the observation models mask:1 and noise:0.1; what"
        " my_module:MyEnv itself hides stays hidden there."
    )
    for said in (page_of(made).text("body"), report_markdown(read(made), pictures=[])):
        assert "fully observable" not in said and "nothing is hidden" not in said
        assert "without the observation models mask:1 and noise:0.1" in said
        assert said.count(note) + said.count(text(note)) == 1
    known = with_twin_of("gymnasium:CartPole-v1", "mask:1")
    assert "fully observable twin" in page_of(known).text("body")
    assert not [said for said in known.sentences if "stays hidden" in said]


@pytest.mark.parametrize(("seeds", "percent"), [(5, "93.75 %"), (6, "95 %"), (3, "95 %")])
def test_the_interval_that_decides_is_labelled_with_what_it_is_worth(seeds, percent):
    page = page_of(comparison(seeds=seeds, twin=True, points=9))
    [columns] = [row for row in page.rows if row[0] == "quantity"]
    assert columns == ["quantity", "mean", f"{percent} interval", "p", "ahead"]


def test_notes_of_a_verdict_are_told():
    made = comparison(seeds=5, points=9)
    [*_, note] = made.analysis.tasks[0].verdict.notes  # those on learning curves come first
    assert f"Note: {note}" in page_of(made).text("header")
    assert f"- Note: {text(note)}\n" in report_markdown(read(made), pictures=[])
    few = page_of(comparison(seeds=3, points=9)).text("header")
    assert "Note: lstm was still improving" in few and few.count("Note:") == 1, "nothing rests on a withheld verdict"


def test_settings_versions_and_command_are_complete(with_twin, page):
    data = with_twin.to_dict()
    rows = dict(row for row in page.rows if len(row) == 2)
    assert rows["total_timesteps"] == "500000" and rows["ppo.gamma"] == "0.99" and rows["evaluation.episodes"] == "100"
    assert {"python", "jax", "machine.cores", "duration"} < set(rows)
    assert len(rows) >= len(data["config"]) - 1 + len(data["config"]["ppo"]) + len(data["versions"])
    assert "flicker_prob=0.5" in rows["environment: FlickeringCartPole-v0"]
    assert page.text("pre") == with_twin.command


def test_embedded_data_are_the_recordings(with_twin, source, page):
    raw = re.search(r'<script type="application/json" id="replay-data">(.*?)</script>', source)[1]
    blocks = json.loads(raw)
    assert len(blocks) == 2 == sum("data-replay" in attributes for _, attributes in page.elements)
    [task] = with_twin.to_dict()["tasks"]
    for block, condition in zip(blocks, task["conditions"], strict=True):
        for episode, (name, arm) in zip(block, condition["arms"].items(), strict=True):
            kept = arm["recording"]
            assert episode["arm"] == name and episode["frames"] == len(kept["rewards"])
            assert episode["blank"] == kept["blanks"]
            assert episode["total"][-1] == sum(kept["rewards"])
            assert episode["action"] == [str(action) for action in kept["actions"]]
            assert episode["state"] == [[state[0], state[2]] for state in kept["states"]]
    assert json.loads(embedded({"x": NASTY})) == {"x": NASTY}
    assert "<" not in embedded({"x": NASTY})


def with_recording(kept):
    data = comparison(arms=("lstm",), seeds=1).to_dict()
    data["tasks"][0]["conditions"][0]["arms"]["lstm"]["recording"] = kept
    return Page(report_html(read(data)))


def classes(page):
    return [attributes.get("class") for _, attributes in page.elements]


def test_an_environment_that_cannot_be_drawn_shows_strips_alone():
    kept = recording("lstm", 0, 60.0, drawable=False, coordinates=12)
    kept["observations"][3][1] = None  # not finite
    page = with_recording(kept)
    assert "scene" not in classes(page) and "cursor" in classes(page)
    assert classes(page).count("seen") == 8 and "The first 8 of 12 numbers." in page.text("section")
    [blanks] = [attributes["d"] for _, attributes in page.elements if attributes.get("class") == "blank-runs"]
    runs = "".join(str(int(blank)) for blank in kept["blanks"])
    assert blanks.count("M") == 8 * len(re.findall("1+", runs))


@pytest.mark.parametrize("kept", [None, {"rewards": []}], ids=["none", "no step"])
def test_without_a_recording_there_is_no_replay(kept):
    page = with_recording(kept)
    assert not any("data-replay" in attributes for _, attributes in page.elements)


def test_large_observations_and_vector_actions_are_replayed_too():
    kept = recording("lstm", 0, 30.0, drawable=False) | {"observations": None, "actions": [[0.25, -1.0]] * 30}
    page = with_recording(kept)
    assert "cursor" in classes(page) and "seen" not in classes(page)
    assert "(0.25, -1)" in page.text("b")


def test_every_seed_has_its_line_and_many_seeds_an_interval(with_twin, page):
    titles = [data for inside, data in page.texts if inside[-1:] == ("title",) and data.startswith("seed ")]
    assert titles.count("seed 7") == 2 * 2 + 2  # a curve per arm and a slope, under both conditions
    [task] = read(with_twin).tasks
    lstm = task.conditions[0].arms[0]
    many, few = band(lstm.seeds), band(lstm.seeds[:3])
    assert many.is_interval and not few.is_interval
    at = few.steps.tolist().index(few.steps[80])
    values = [seed.returns[seed.steps.index(few.steps[at])] for seed in lstm.seeds[:3]]
    assert (few.low[at], few.high[at]) == (min(values), max(values))
    assert few.mean[at] == pytest.approx(sum(values) / 3)
    assert len(many.steps) == 160 and many.steps[-1] == lstm.seeds[0].steps[-1]


def test_the_same_result_gives_the_same_bytes(tmp_path):
    made = comparison(envs=TASKS[:1], seeds=5, points=9)
    data = json.loads(json.dumps(made.to_dict()))
    first, second = write_report(made, tmp_path / "a"), write_report(data, tmp_path / "b")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_a_report_is_of_a_sensible_size(source):
    assert len(source) < 400_000


@pytest.mark.parametrize("data", [{}, {"schema": "thrust-rl/comparison", "schema_version": 1}], ids=["other", "old"])
def test_another_schema_is_refused_before_anything_is_written(tmp_path, data):
    with pytest.raises(ConfigError, match="version 2"):
        write_report(data, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("low", "high"), [(0.0, 1e-9), (-1500.0, -3.0), (0.0, 3e8), (-0.013, 0.02)])
def test_ticks_are_few_round_and_inside(low, high):
    found = ticks(low, high)
    assert 2 <= len(found) <= 7 and all(low <= tick <= high * (1 + 1e-9) or tick <= high for tick in found)
    steps = {f"{b - a:.3e}" for a, b in zip(found, found[1:], strict=False)}
    assert len(steps) == 1 and steps.pop()[0] in "125"


def test_a_scale_fits_a_single_value_and_none():
    for values in ([], [0.0], [-3.0], [float("nan")]):
        scale = fitted(values, 100.0, 0.0)
        assert scale.low < scale.high
        assert all(0.0 <= scale(value) <= 100.0 for value in values if value == value)


DRIVER = """
<script>
const out = [], slider = document.querySelector("[data-replay] input"), body = document.body;
const look = () => out.push([...document.querySelectorAll("[data-replay='0'] .panel")].map((panel) => ({
  blank: panel.querySelector(".scene").classList.contains("is-blank"),
  cart: panel.querySelector(".cart").getAttribute("transform"),
  turn: panel.querySelector(".turn").getAttribute("transform"),
  cursor: Number(panel.querySelector(".cursor").getAttribute("x1")),
  said: panel.querySelector(".readout").textContent,
})));
for (const step of [0, 3, 170]) { slider.value = String(step); slider.dispatchEvent(new Event("input")); look(); }
document.querySelector("[data-play]").click();
setTimeout(() => {
  body.dataset.played = document.querySelector("[data-replay]").dataset.step;
  body.dataset.seen = JSON.stringify(out);
}, 1500);
</script>
</body>"""


@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason=f"needs a browser: one of {', '.join(BROWSERS)}")
def test_a_browser_replays_the_episodes_without_an_error(tmp_path, with_twin, source):
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    page = tmp_path / "page.html"
    page.write_text(source.replace("</body>", DRIVER))
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
    options += ["--virtual-time-budget=4000", "--enable-logging=stderr", "--dump-dom", page.as_uri()]
    done = subprocess.run([browser, *options], capture_output=True, text=True, timeout=60, check=True)
    assert "CONSOLE" not in done.stderr, done.stderr
    root, body = (next(attrs for tag, attrs in Page(done.stdout).elements if tag == name) for name in ("html", "body"))
    assert root["class"] == "scripted"
    kept = [arm.recording for arm in with_twin.arms]
    for step, panels in zip((0, 3, 170), json.loads(body["data-seen"]), strict=True):
        for panel, one in zip(panels, kept, strict=True):
            at = min(step, len(one["rewards"]) - 1)
            assert panel["blank"] == one["blanks"][at]
            assert f"return so far {at + 1}" in panel["said"]
            assert ("over at" in panel["said"]) == (step > at)
            assert float(re.search(r"rotate\((.*)\)", panel["turn"])[1]) == pytest.approx(
                one["states"][at][2] * 180 / 3.14159265, abs=0.01
            )
    cursors = [panels[0]["cursor"] for panels in json.loads(body["data-seen"])]
    assert cursors == sorted(set(cursors))
    assert 170 < int(body["data-played"]) <= 170 + 15 * 1.5, "15 steps a second, for as long as it played"
