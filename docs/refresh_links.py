"""Point every link of the documentation to the line where its symbol is defined now: `python docs/refresh_links.py`."""

import ast
import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent
LINK = re.compile(r"\[`([\w.]+)`\]\(((?:\.\./)+src/[\w/]+\.py)#L(\d+)\)")  # [`symbol`](path#Lline)


def line_of(source: str, symbol: str) -> int:
    """Line (from 1) that defines `symbol`, for example `LSTM.unroll` or `PPOConfig.gamma`; LookupError if none does."""
    node: ast.AST = ast.parse(source)
    for name in symbol.split("."):
        found = [inner for inner in getattr(node, "body", []) if name in _names(inner)]
        if not found:
            raise LookupError(f"nothing is called {symbol!r} there: rename the link, or drop it")
        node = found[0]
    return node.lineno


def _names(node: ast.AST) -> list[str]:
    """What a statement defines."""
    targets = [getattr(node, "target", None), *getattr(node, "targets", [])]
    return [getattr(node, "name", ""), *(target.id for target in targets if isinstance(target, ast.Name))]


def refreshed(page: Path) -> str:
    """The page's text with every line number as it is now."""

    def link(match: re.Match[str]) -> str:
        symbol, path, _ = match.groups()
        return f"[`{symbol}`]({path}#L{line_of((page.parent / path).read_text(), symbol)})"

    return LINK.sub(link, page.read_text())


if __name__ == "__main__":
    for page in DOCS.rglob("*.md"):
        page.write_text(refreshed(page))
