"""split_request: which part of an evaluation judges tensors, and which the profile."""

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
    own = [rule for rule in request.rules if _is_profiler_rule(rule)]
    ids = [rule.id or _NAMES[(rule.name or "").casefold()] for rule in own]
    if RULE not in ids:
        own.insert(0, RuleRequest(name=RULE))
        ids.append(RULE)

    def fields(*, profiler: bool) -> dict[str, tuple[str, ...]]:
        """Return the options that name one of the profiler rules, or the others."""
        ends = {"parameters": ".", "modes": "=", "actions": "="}
        return {
            field: tuple(
                text
                for text in getattr(request, field)
                if text.startswith(tuple(f"{rule_id}{end}" for rule_id in ids)) is profiler
            )
            for field, end in ends.items()
        }

    others = tuple(rule for rule in request.rules if not _is_profiler_rule(rule))
    profiler_fields = fields(profiler=True)
    profiler_fields["modes"] += tuple(mode for mode in request.modes if "=" not in mode)
    return (
        replace(request, rules=others, **fields(profiler=False)),
        replace(
            request, rules=tuple(own), job=None, start_step=None, end_step=None, **profiler_fields
        ),
    )


def _is_profiler_rule(rule: RuleRequest) -> bool:
    return rule.source is None and (rule.name or "").casefold() in _NAMES
