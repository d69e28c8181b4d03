"""Pages on the built-in rules, in Markdown: all of it from what the rules declare themselves."""

import inspect
from collections.abc import Iterable, Mapping

from rule_core.rules.evidence import Quantity
from rule_core.rules.params import Param, PatternsParam
from rule_core.rules.rule import Rule
from rule_runner.errors import ClientError
from rule_runner.loading.loader import LoadedRule, load_builtin
from rule_runner.loading.parameters import bind, required_inputs


def page(name: str, picture: str = "") -> str:
    """Return what there is to say about a built-in rule.

    Parameters
    ----------
    picture
        Where a picture of a typical finding lies, as a link; "" for none.

    Raises
    ------
    UnknownRuleError
        If there is no such rule.
    """
    loaded = load_builtin(name)
    sections = _sections(loaded, picture)
    texts = [f"# {loaded.name}", sentence(loaded.rule_class)]
    texts += [f"## {heading}\n\n{text}" for heading, text in sections if text]
    return "\n\n".join(texts) + "\n"


def sentence(rule: type[Rule]) -> str:
    """Return in one sentence what a rule finds: the first of its file, without the name."""
    summary = (inspect.getdoc(inspect.getmodule(rule)) or "").partition("\n")[0]
    text = summary.partition(": ")[2]
    return text[:1].upper() + text[1:]


def _sections(loaded: LoadedRule, picture: str) -> Iterable[tuple[str, str]]:
    """Yield headings and texts, in the order of the page; "" for what a rule does not say."""
    rule, name = loaded.rule_class, loaded.name
    page = rule.PAGE
    yield "Why it matters", page.why if page else ""
    yield "A typical finding", picture and f"![Chart of a finding of {name}]({picture})"
    yield "What to do when it fires", page.remedy if page else ""
    yield "The exact condition", inspect.getdoc(rule) or ""
    yield "What it measures", "\n".join(map(_quantity, rule.QUANTITIES))
    yield "What it reads", rule.READS and f"It reads {rule.READS}{_required(loaded)}"
    yield "How to save that", page.save if page else ""
    yield "Parameters", _parameters(rule.PARAMS)
    yield "NaN, missing data, too few steps", page.missing if page else ""
    yield "Where it is blind or noisy", page.limits if page else ""


def _required(loaded: LoadedRule) -> str:
    """Return what a rule with its default parameters cannot do without; "" if that is nothing."""
    try:
        required = required_inputs(bind(loaded, {}))
    except ClientError:  # it needs a parameter
        return ""
    names = " and ".join(map(str, required))
    return names and f"\n\nWithout {names} it judges nothing."


def _quantity(quantity: Quantity) -> str:
    return f"- {quantity.label}; bad is what lies {quantity.worse} the limit."


def _parameters(params: Iterable[Param]) -> str:
    rows = ["| name | takes | default | what it does |", "|---|---|---|---|", *map(_row, params)]
    patterns = [one for one in params if isinstance(one, PatternsParam)]
    texts = ["\n".join(rows) if len(rows) > 2 else "It takes none."]  # noqa: PLR2004 - the heading
    return "\n\n".join(texts + [text for one in patterns if (text := _also(one))])


def _row(param: Param) -> str:
    takes = ", ".join(filter(None, (param.type_name, param.range_text, param.unit)))
    default = param.default_text
    shown = default if default in {"none", "required"} else f"`{default}`"
    return "| " + " | ".join(map(_cell, (f"`{param.name}`", takes, shown, param.meaning))) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _also(param: PatternsParam) -> str:
    """Return what else is looked for where a parameter is not given."""
    looked = [f"the collection `{param.collection}`"] if param.collection else []
    looked += [f"`{pattern}`" for pattern in param.also]
    if not looked:
        return ""
    items = "\n".join(f"- {one}" for one in looked)
    return f"Where `{param.name}` is not given, these are looked for too:\n\n{items}"


def index() -> str:
    """Return a page that leads to those of all built-in rules."""
    from builtin_rules import RULES
    from builtin_rules.profiler_table import PROFILER_RULES

    lines = [
        "# Built-in rules",
        "",
        "What each finds. `rule-runner rules show NAME` prints its page, and",
        "`rule-runner evaluate --trial DIR --rule NAME -p name=value` judges a trial by it.",
        "",
        *_table(RULES),
        "",
        "These judge profiler data, one time window after the other:",
        "`rule-runner evaluate --profiler-trial DIR --rule NAME`.",
        "",
        *_table(PROFILER_RULES),
    ]
    return "\n".join(lines) + "\n"


def _table(rules: Mapping[str, type[Rule]]) -> Iterable[str]:
    yield "| rule | what it finds |"
    yield "|---|---|"
    for name, rule in rules.items():
        yield f"| [{name}]({name}.md) | {_cell(sentence(rule))} |"
