"""The page of a rule: the prose in `pages`, or the one that its class declares."""

import re
from pathlib import Path
from typing import Final

from smdebug.rules import Rule
from smdebug.rules.extensions import Page

FOLDER: Final = Path(__file__).with_name("pages")
HEADINGS: Final = {
    "why": "Why it matters",
    "remedy": "What to do when it fires",
    "severity": "How serious it is",
    "save": "How to save that",
    "missing": "NaN, missing data, too few steps",
    "limits": "Where it is blind or noisy",
}


def rule_page(rule: type[Rule]) -> Page:
    """Return the page of a rule; all its sections are "" if it has none.

    A built-in rule has a file in `pages`, any other rule the attribute `PAGE`. A rule without
    either inherits the page of its base class.
    """
    for ancestor in rule.__mro__:
        declared: Page | None = vars(ancestor).get("PAGE")
        if declared:
            return declared
        path = FOLDER / f"{ancestor.__name__}.md"
        if ancestor.__module__.startswith(f"{__package__}.") and path.exists():
            return parsed(path.read_text("utf-8"))
    return parsed("")


def parsed(markdown: str) -> Page:
    """Return a page from Markdown with a second-level heading for each section."""
    _, *headings_and_texts = re.split(r"^## (.*)$", markdown, flags=re.MULTILINE)
    texts = dict(zip(headings_and_texts[::2], headings_and_texts[1::2], strict=True))
    return Page(**{field: texts.get(heading, "") for field, heading in HEADINGS.items()})
