"""The documents at the root and the guides name files that exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = [
    page for folder in (".", "docs", "benchmarks/*") for page in sorted(ROOT.glob(f"{folder}/*.md"))
]
FOLDERS = "rule_core|smdebug|builtin_rules|rule_runner|tests|scripts|docs|examples|benchmarks"
PATH = re.compile(
    rf"(?:^|[`\s])\.?/?((?:{FOLDERS}|\.ci)/[\w./-]*[\w/])(?=$|[`\s,;:])", re.MULTILINE
)
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
# Written by scripts/new_rule.
TO_BE_WRITTEN = {"builtin_rules/tensors/losses/loss_too_high.py"}


def missing(page: Path) -> Iterator[str]:
    """Yield the paths and links on a page that lead nowhere."""
    text = page.read_text(encoding="utf-8")
    for path in PATH.findall(text):
        if path not in TO_BE_WRITTEN and not (ROOT / path).exists():
            yield path
    for link in LINK.findall(text):
        if not (page.parent / link).exists():
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_paths_on_a_page_exist(page: Path) -> None:
    assert list(missing(page)) == []


def test_the_architecture_names_every_layer() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = {
        path.parent.relative_to(ROOT).as_posix()
        for package in ("rule_core", "rule_runner")
        for path in ROOT.glob(f"{package}/*/__init__.py")
    }
    assert [room for room in sorted(rooms) if f"`{room}/`" not in text] == []
