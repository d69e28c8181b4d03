"""Markdown pages about the built-in rules, generated from their declarations."""

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence

from builtin_rules.rule_page import FINDING, HEADINGS, finding_texts, rule_page, rule_summary
from rule_core.rules.params import Param, PatternsParam
from rule_runner.errors import ClientError
from rule_runner.loading.loader import LoadedRule, load_named
from rule_runner.loading.parameters import bind, required_inputs


def page(name: str, picture: str = "", line: str = "") -> str:
    """Return the page of a built-in rule, or of one of an installed package.

    Parameters
    ----------
    picture
        Link to a picture of a typical finding; "" for none.
    line
        What `evaluate` prints of a finding; "" if it is unknown.

    Raises
    ------
    UnknownRuleError
        If there is no such rule.
    """
    loaded = load_named(name)
    sections = _sections(loaded, picture, line)
    texts = [f"# {loaded.name}", rule_summary(loaded.rule_class)]
    texts += [f"## {heading}\n\n{text}" for heading, text in sections if text]
    return "\n\n".join(texts) + "\n"


def _sections(loaded: LoadedRule, picture: str, line: str) -> Iterable[tuple[str, str]]:
    """Yield headings and texts in the order of the page; the text of a missing section is ""."""
    rule, name = loaded.rule_class, loaded.name
    page = rule_page(rule)
    yield HEADINGS["why"], page.why
    yield "A typical finding", picture and f"![Chart of a finding of {name}]({picture})"
    printed = line and f"`rule-runner evaluate` prints, for example:\n\n> {line}"
    yield FINDING, "\n\n".join(filter(None, ("\n".join(_finding(loaded)), printed)))
    yield HEADINGS["remedy"], page.remedy
    yield HEADINGS["severity"], page.severity
    yield "The exact condition", inspect.getdoc(rule) or ""
    measured = (f"- {q.label}; bad is what lies {q.worse} the limit." for q in rule.QUANTITIES)
    yield "What it measures", "\n".join(measured)
    yield "What it reads", rule.READS and f"It reads {rule.READS}{_required(loaded)}"
    yield HEADINGS["save"], page.save
    yield "Parameters", _parameters(rule.PARAMS)
    yield HEADINGS["missing"], page.missing
    yield HEADINGS["limits"], page.limits


def _finding(loaded: LoadedRule) -> Iterator[str]:
    """Yield what the findings of a built-in rule say, as a list."""
    for explanation in finding_texts(loaded.name).examples() if loaded.builtin else ():
        yield f"- {explanation.summary} *{explanation.advice}*"


def _required(loaded: LoadedRule) -> str:
    """Return a sentence on the inputs that a rule requires with its default parameters, or ""."""
    try:
        required = required_inputs(bind(loaded, {}))
    except ClientError:  # it needs a parameter
        return ""
    # Code, so that Markdown takes no part of a pattern for a link.
    names = re.sub("'([^']*)'", r"`\1`", " and ".join(map(str, required)))
    return names and f"\n\nWithout {names} it judges nothing."


def _parameters(params: Sequence[Param]) -> str:
    if not params:
        return "It takes none."
    rows = ["| name | takes | default | what it does |", "|---|---|---|---|", *map(_row, params)]
    defaults = [_default_tensors(param) for param in params if isinstance(param, PatternsParam)]
    return "\n\n".join(filter(None, ["\n".join(rows), *defaults]))


def _row(param: Param) -> str:
    takes = ", ".join(filter(None, (param.type_name, param.range_text, param.unit)))
    default = param.default_text
    code = default if default in {"none", "required"} else f"`{default}`"
    return "| " + " | ".join(map(cell, (f"`{param.name}`", takes, code, param.meaning))) + " |"


def cell(text: str) -> str:
    """Return a text as a cell of a table."""
    return text.replace("|", "\\|").replace("\n", " ")


def _default_tensors(param: PatternsParam) -> str:
    """Return a list of the tensors that a rule also reads by default; "" if there are none."""
    sources = [f"the collection `{param.collection}`"] if param.collection else []
    sources += [f"`{pattern}`" for pattern in param.also]
    if not sources:
        return ""
    items = "\n".join(f"- {source}" for source in sources)
    return f"Where `{param.name}` is not given, these are looked for too:\n\n{items}"
