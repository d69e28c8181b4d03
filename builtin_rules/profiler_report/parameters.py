"""The parameters of the profiler report: those of the rules in it, in each spelling there is."""

import ast
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from builtin_rules.profiler.parameters import SCAN_INTERVAL
from builtin_rules.profiler_report.sub_rules import SUB_RULES
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.params import BoolParam, IntParam, Param, TextParam

CUSTOM: Final = "custom_rule_parameters"
OPT_OUT: Final = "opt_out_telemetry"
MET: Final = "met_if_triggered"
LEAST_US: Final = 1_000_000
MOST: Final = 10_000  # characters of a dict's text: all parameters there are take 2,000
# One dict without anything in it that could be nested or called.
_FLAT: Final = re.compile(r"\s*\{[^{}()\[\]]*\}\s*")
_NOT_GIVEN: Final = frozenset({"", "None"})


def declared() -> tuple[Param, ...]:
    """Return each parameter of each rule in the report, as ``<Rule>_<parameter>``; and its own."""
    of_rules = [
        _of_report(name, param) for name, rule in SUB_RULES.items() for param in rule.PARAMS
    ]
    return (
        *of_rules,
        BoolParam(
            MET,
            "Whether the condition counts as met when the data end and some rule was triggered.",
            default=False,
        ),
        BoolParam(OPT_OUT, "Nothing: no telemetry is sent, whatever it is.", default=False),
        TextParam(
            CUSTOM,
            "Parameters of the rules as SDKs send them: the text of a Python dict.",
            pattern=r"(?s).+",
            allowed="the text of a flat Python dict",
        ),
    )


def _of_report(rule: str, param: Param) -> Param:
    """Return a parameter of a rule as the report declares it."""
    known = replace(param, name=f"{rule}_{param.name}")
    if isinstance(known, IntParam) and param.name == SCAN_INTERVAL.name:
        # Here it does not say which windows there are: empty ones are walked over, too.
        return replace(known, minimum=LEAST_US)
    return known


def of_rule(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of one rule in the report, by its own names for them."""
    return {param.name: values[f"{name}_{param.name}"] for param in SUB_RULES[name].PARAMS}


def respelled(raw: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return parameters by their declared names; an unknown name stays as it is.

    Parameters
    ----------
    raw
        As given, in upper or lower case; some of them perhaps in the text of a dict.
    names
        The declared names, by themselves in lower case.

    Raises
    ------
    SMDebugValueError
        If the text is no flat dict, or a parameter is given twice.
    """
    found: dict[str, Any] = {}
    packed = {name for name in raw if name.lower() == CUSTOM and not _is_none(raw[name])}
    texts = [_read(raw[name]) for name in packed]
    for part in ({name: raw[name] for name in raw if name not in packed}, *texts):
        for name, value in part.items():
            known = names.get(name.lower(), name)
            if known in found:
                msg = f"Parameter {known!r} must be given once, got {found[known]!r} and {value!r}."
                raise SMDebugValueError(msg)
            found[known] = value
    return found


def _is_none(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.strip() in _NOT_GIVEN)


def _read(text: Any) -> dict[str, Any]:
    """Return the dict that a text is; it is read as a literal, and never evaluated."""
    if isinstance(text, str) and len(text) <= MOST and _FLAT.fullmatch(text):
        try:
            value = ast.literal_eval(text.strip())
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            value = None
        if isinstance(value, dict) and all(isinstance(name, str) for name in value):
            return value
    msg = (
        f"Parameter {CUSTOM!r} must be the text of a flat Python dict with names of parameters, "
        f"at most {MOST} characters, got {_brief(text)}. Give the parameters one by one instead."
    )
    raise SMDebugValueError(msg)


def _brief(text: Any) -> str:
    shown = repr(text)
    return shown if len(shown) <= 100 else f"{shown[:97]}..."  # noqa: PLR2004 - of a line
