"""The page of a rule: the prose in `pages`, or the one that its class declares."""

import inspect
import re
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

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
FINDING: Final = "What a finding says"
_SENTENCE: Final = re.compile(r"^- `(\w+)`, limited by `(\w+)`: (.*(?:\n  .*)*)", re.MULTILINE)


class FindingTexts(NamedTuple):
    """The texts for the findings of a rule.

    Attributes
    ----------
    remedy
        A sentence on what to do first.
    limited_by
        By quantity, the parameter whose value is the limit.
    sentences
        By quantity, a sentence with the fields ``where``, ``worker``, ``measured`` and ``limit``.
    """

    remedy: str
    limited_by: dict[str, str]
    sentences: dict[str, str]


@cache
def finding_texts(rule: str) -> FindingTexts:
    """Return what the page of a built-in rule says about its findings.

    Raises
    ------
    KeyError
        If the page does not say it.
    """
    section = _sections((FOLDER / f"{rule}.md").read_text("utf-8"))[FINDING]
    items = _SENTENCE.findall(section)
    return FindingTexts(
        section.strip().partition("\n")[0],
        {quantity: parameter for quantity, parameter, _ in items},
        {quantity: " ".join(sentence.split()) for quantity, _, sentence in items},
    )


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


def rule_summary(rule: type[Rule]) -> str:
    """Return the sentence on what a rule finds: its module's first line, without the name.

    It is the first paragraph of the class's docstring if the module's one names no rule.
    """
    line = (inspect.getdoc(inspect.getmodule(rule)) or "").partition("\n")[0].partition(": ")[2]
    line = line or " ".join(inspect.cleandoc(rule.__doc__ or "").partition("\n\n")[0].split())
    return line[:1].upper() + line[1:]


def parsed(markdown: str) -> Page:
    """Return a page from Markdown with a second-level heading for each section."""
    texts = _sections(markdown)
    return Page(**{field: texts.get(heading, "") for field, heading in HEADINGS.items()})


def _sections(markdown: str) -> dict[str, str]:
    _, *headings_and_texts = re.split(r"^## (.*)$", markdown, flags=re.MULTILINE)
    return dict(zip(headings_and_texts[::2], headings_and_texts[1::2], strict=True))
