"""The page of a rule: the prose in `pages`, or the one that its class declares."""

import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from builtin_rules.reports.profiler.wording import number, step_name
from smdebug.rules import Rule
from smdebug.rules.extensions import Explanation, Finding, Page

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
_CASE: Final = re.compile(
    r"^- (?:`([^`]+)`(?:, limited by `(\w+)`)?|([^`:]+)): (.*(?:\n  .*)*)", re.MULTILINE
)


class _Field(NamedTuple):
    """A field of a sentence: a number is formatted as such, an absent text as the given noun."""

    content: Any

    def __format__(self, spec: str) -> str:
        if isinstance(self.content, str):
            return self.content or spec
        return format(self.content, spec) if spec else number(self.content)


class FindingTexts(NamedTuple):
    """The texts for the findings of a rule.

    Attributes
    ----------
    remedy
        A sentence on what to do first.
    limited_by
        By quantity, the parameter whose value is the limit.
    sentences
        By quantity, a sentence with the fields ``where``, ``worker``, ``step``, ``measured`` and
        ``limit``.
    noted
        Such sentences by a part of the note; they go before those by quantity.
    advice
        By sentence, what to do first if it is not the `remedy`.
    """

    remedy: str
    limited_by: dict[str, str]
    sentences: dict[str, str]
    noted: dict[str, str]
    advice: dict[str, str]

    def explain(self, finding: Finding, where: str, step: str) -> Explanation:
        """Return the sentence of a finding, with its numbers, and what to do first."""
        note, by_quantity = finding.note or "", self.sentences
        noted = next((self.noted[words] for words in self.noted if words in note), "")
        sentence = (
            noted or by_quantity.get(finding.quantity or "") or next(iter(by_quantity.values()))
        )
        return self._explanation(sentence, finding, where, step)

    def examples(self) -> Iterator[Explanation]:
        """Yield each sentence with words for its fields, and what to do first."""
        finding = Finding(0, worker="WORKER", measured="X", limit="Y")
        for sentence in (*self.noted.values(), *self.sentences.values()):
            yield self._explanation(sentence, finding, "TENSOR", "step N")

    def _explanation(self, sentence: str, finding: Finding, where: str, step: str) -> Explanation:
        fields = {
            "where": step_name(where),
            "worker": finding.worker or "the job",
            "step": step,
            "measured": finding.measured,
            "limit": finding.limit,
        }
        summary = sentence.format_map({name: _Field(content) for name, content in fields.items()})
        advice = self.advice.get(sentence, self.remedy)
        return Explanation(summary if where else summary[:1].upper() + summary[1:], advice)


@cache
def finding_texts(rule: str) -> FindingTexts:
    """Return what the page of a built-in rule says about its findings; it may say nothing."""
    path = FOLDER / f"{rule}.md"
    section = _sections(path.read_text("utf-8") if path.exists() else "").get(FINDING, "")
    remedy = " ".join(section.strip().partition("\n\n")[0].split())
    texts = FindingTexts(remedy, {}, {}, {}, {})
    for quantity, parameter, words, lines in _CASE.findall(section):
        sentence, _, advice = " ".join(lines.split()).removesuffix("*").partition(" *")
        if quantity:
            texts.sentences[quantity] = sentence
            texts.limited_by[quantity] = parameter
        else:
            texts.noted[words] = sentence
        if advice:
            texts.advice[sentence] = advice
    return texts


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
