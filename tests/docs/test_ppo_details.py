"""The documentation's links lead where they say: to a file, and to the line that defines the symbol they name."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
REFRESH = runpy.run_path(str(ROOT / "docs" / "refresh_links.py"))
RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)#\s]+)[^)]*\)")
TO_LINE = re.compile(r"\[([^\]]*)\]\(([^)#\s]+\.py)#L(\d+)\)")


def prose(page):
    """A page without its fenced code."""
    return re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)


def sections():
    """Title and body of every numbered detail."""
    parts = re.split(r"^### (\d+)\. ", prose(ROOT / "docs" / "ppo-details.md"), flags=re.MULTILINE)[1:]
    return list(zip(map(int, parts[::2]), parts[1::2], strict=True))


def line_links():
    for page in PAGES:
        for text, path, line in TO_LINE.findall(prose(page)):
            yield pytest.param(page, text, path, int(line), id=f"{page.name}-{text.strip('`')}-{line}")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_relative_links_exist(page):
    missing = [path for path in RELATIVE_LINK.findall(prose(page)) if not (page.parent / path).exists()]
    assert not missing, f"{page.relative_to(ROOT)} links to what is not there: {missing}"


@pytest.mark.parametrize(("page", "text", "path", "line"), list(line_links()))
def test_line_links_point_to_the_definition(page, text, path, line):
    symbol = text.strip("`")
    source = (page.parent / path).read_text()
    defined = REFRESH["line_of"](source, symbol)
    assert line == defined, f"{symbol} is now at line {defined} of {path}: run python docs/refresh_links.py"
    assert re.search(rf"\b{symbol.split('.')[-1]}\b", source.splitlines()[line - 1])


def test_every_line_link_can_be_refreshed():
    written = [link for page in PAGES for link in TO_LINE.findall(page.read_text())]
    refreshable = [link for page in PAGES for link in REFRESH["LINK"].findall(page.read_text())]
    assert [(text.strip("`"), path, line) for text, path, line in written] == refreshable


def test_details_are_numbered_without_gaps():
    numbers = [number for number, _ in sections()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 25


@pytest.mark.parametrize(("number", "body"), sections(), ids=lambda value: str(value) if isinstance(value, int) else "")
def test_every_detail_names_its_source_and_its_code(number, body):
    body = body.split("\n## ")[0]
    assert "**Source:**" in body
    assert "**Why:**" in body
    assert TO_LINE.search(body)


def test_line_of_finds_definitions():
    source = "A = 1\n\n@deco\ndef f():\n    pass\n\nclass C:\n    x: int = 0\n    def f(self):\n        pass\n"
    line_of = REFRESH["line_of"]
    assert [line_of(source, name) for name in ("A", "f", "C", "C.x", "C.f")] == [1, 4, 7, 8, 9]
    with pytest.raises(LookupError, match="C.y"):
        line_of(source, "C.y")
