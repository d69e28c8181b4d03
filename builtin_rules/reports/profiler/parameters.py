"""The parameters of the profiler report: those of its rules, in every accepted spelling."""

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL
from builtin_rules.reports.profiler.sub_rules import SUB_RULES
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import BoolParam, IntParam, Param, TextParam

CUSTOM: Final = "custom_rule_parameters"
OPT_OUT: Final = "opt_out_telemetry"
MET: Final = "met_if_triggered"
SHORTEST_INTERVAL_US: Final = 1_000_000
MAX_TEXT: Final = 10_000  # characters; all declared parameters together take 2,000
MAX_QUOTED: Final = 100  # characters of a value quoted in an error
# A single dict without anything nested or called.
_FLAT: Final = re.compile(r"\s*\{[^{}()\[\]]*\}\s*")
_NOT_GIVEN: Final = frozenset({"", "None"})


def declared() -> tuple[Param, ...]:
    """Return the parameters of all rules, as ``<Rule>_<parameter>``, and those of the report."""
    of_rules = [
        _of_report(name, param) for name, rule in SUB_RULES.items() for param in rule.PARAMS
    ]
    return (
        *of_rules,
        BoolParam(
            MET,
            "Whether the condition is met at the end of the data if any rule was triggered.",
            default=False,
        ),
        BoolParam(OPT_OUT, "Ignored: no telemetry is ever sent.", default=False),
        TextParam(
            CUSTOM,
            "Rule parameters as SDKs send them: the text of a Python dict.",
            pattern=r"(?s).+",
            allowed="the text of a flat Python dict",
        ),
    )


def _of_report(rule: str, param: Param) -> Param:
    """Return a parameter of a rule as the report declares it."""
    renamed = replace(param, name=f"{rule}_{param.name}")
    if isinstance(renamed, IntParam) and param.name == SCAN_INTERVAL.param.name:
        # With a shorter interval, the report would walk over many empty windows.
        return replace(renamed, minimum=SHORTEST_INTERVAL_US)
    return renamed


def of_rule(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of one rule, by the rule's own names."""
    return {param.name: values[f"{name}_{param.name}"] for param in SUB_RULES[name].PARAMS}


def rename_parameters(raw: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return parameters by their declared names; unknown names are kept.

    Parameters
    ----------
    raw
        Values by name in any case; some may be packed into the text of a dict.
    names
        Declared names by lower-case name.

    Raises
    ------
    SMDebugValueError
        If the text is not a flat dict, or a parameter is given twice.
    """
    values: dict[str, Any] = {}
    packed = {name for name in raw if name.lower() == CUSTOM}
    packed -= {name for name in packed if str(raw[name]).strip() in _NOT_GIVEN}
    texts = [_read(raw[name]) for name in packed]
    for part in ({name: raw[name] for name in raw if name not in packed}, *texts):
        for name, value in part.items():
            declared = names.get(name.lower(), name)
            if declared in values:
                raise SMDebugValueError(
                    f"Parameter {declared!r} must be given once, "
                    f"got {values[declared]!r} and {value!r}."
                )
            values[declared] = value
    return values


def _read(text: Any) -> dict[str, Any]:
    """Parse the text of a dict as a literal, without evaluating it."""
    if isinstance(text, str) and len(text) <= MAX_TEXT and _FLAT.fullmatch(text):
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            value = None
        if isinstance(value, dict) and all(isinstance(name, str) for name in value):
            return value
    raise SMDebugValueError(
        f"Parameter {CUSTOM!r} must be the text of a flat Python dict with names of parameters, "
        f"at most {MAX_TEXT} characters, got {_brief(text)}. "
        "Give the parameters one by one instead."
    )


def _brief(text: Any) -> str:
    quoted = repr(text)
    return quoted if len(quoted) <= MAX_QUOTED else f"{quoted[: MAX_QUOTED - 3]}..."
