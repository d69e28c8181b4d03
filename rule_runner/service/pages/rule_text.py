"""What rules say of themselves, as HTML."""

from functools import cache
from typing import Final, NamedTuple

from jinja2.filters import do_mark_safe
from markdown_it import MarkdownIt
from markupsafe import Markup

from builtin_rules.rule_page import rule_page
from rule_core.severity import Severity
from rule_runner.loading.loader import every_builtin
from rule_runner.report.rule_pages import page, sentence

_MARKDOWN: Final = MarkdownIt("commonmark", {"html": False}).enable("table")  # escapes HTML


class RuleText(NamedTuple):
    """The page of a built-in rule.

    Attributes
    ----------
    summary
        What it finds, in a sentence.
    remedy
        What to do about a finding; empty if the page does not say.
    text
        The whole page without its title and summary.
    """

    summary: Markup
    severity: Severity
    remedy: Markup
    text: Markup


@cache
def rule_text(rule: str) -> RuleText | None:
    """Return the page of a built-in rule.

    None for any other rule: its code is not imported here, since it may do anything.
    """
    rule_class = every_builtin().get(rule)
    if rule_class is None:
        return None
    _, _, body = page(rule).partition("\n## ")
    return RuleText(
        do_mark_safe(_MARKDOWN.renderInline(sentence(rule_class))),
        rule_class.SEVERITY,
        _html(rule_page(rule_class).remedy),
        _html(f"## {body}" if body else ""),
    )


def _html(text: str) -> Markup:
    """Return Markdown of this package as HTML; HTML in it is escaped."""
    return do_mark_safe(_MARKDOWN.render(text))
