"""split_request: which part of an evaluation judges tensors, and which the profile."""

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from builtin_rules.profiler_table import PROFILER_RULES
from rule_runner.commands.profile.command import RULE
from rule_runner.config.request import EvaluationRequest, RuleRequest

_NAMES: Final = {name.casefold(): name for name in PROFILER_RULES}


def split_request(request: EvaluationRequest) -> tuple[EvaluationRequest, EvaluationRequest]:
    """Return an evaluation without profiler rules, and one with only these and the report.

    Parameters, modes and actions follow the rule jobs that they name; a mode without a name is
    that of both.
    """
    own: list[RuleRequest] = []
    others: list[RuleRequest] = []
    for rule in request.rules:
        (own if _is_profiler_rule(rule) else others).append(rule)
    ids = [rule.id or _NAMES[(rule.name or "").casefold()] for rule in own]
    if RULE not in ids:
        own.insert(0, RuleRequest(name=RULE))
        ids.append(RULE)
    parameters, other_parameters = _parted(request.parameters, ids, ".")
    modes, other_modes = _parted(request.modes, ids, "=")
    actions, other_actions = _parted(request.actions, ids, "=")
    common_modes = tuple(mode for mode in other_modes if "=" not in mode)
    return (
        replace(
            request,
            rules=tuple(others),
            parameters=other_parameters,
            modes=other_modes,
            actions=other_actions,
        ),
        replace(
            request,
            rules=tuple(own),
            job=None,
            parameters=parameters,
            modes=modes + common_modes,
            actions=actions,
            start_step=None,
            end_step=None,
        ),
    )


def _is_profiler_rule(rule: RuleRequest) -> bool:
    return rule.source is None and (rule.name or "").casefold() in _NAMES


def _parted(
    texts: Sequence[str], ids: Sequence[str], end: str
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the options that name one of some rule jobs, and the others."""
    starts = tuple(f"{rule_id}{end}" for rule_id in ids)
    own = tuple(text for text in texts if text.startswith(starts))
    return own, tuple(text for text in texts if not text.startswith(starts))
