"""Says which rules judge time windows of profiler data, and how long those windows are."""

import inspect
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from rule_runner.config.model import (
    DEFAULT_SCAN_INTERVAL_US,
    LEAST_SCAN_INTERVAL_US,
    RuleJobConfig,
)
from rule_runner.errors import UsageError
from rule_runner.loading.loader import LoadedRule
from rule_runner.loading.parameters import accepts

LENGTH: Final = "scan_interval_us"


def judges_windows(loaded: LoadedRule, *, otherwise: bool) -> bool:
    """Say whether a rule judges profiler data.

    Of built-in rules their table tells. A rule of the user's does if its constructor takes the
    length of a window; if not, it is as it is `otherwise`.
    """
    if loaded.builtin:
        from builtin_rules import RULES

        return loaded.name not in RULES
    return otherwise or accepts(loaded, LENGTH)


def names_over(*, tensors: bool, windows: bool) -> list[str]:
    """Return the names of the built-in rules that judge tensors, time windows, or both."""
    from builtin_rules import RULES
    from builtin_rules.profiler_table import PROFILER_RULES

    return [*(RULES if tensors else ()), *(PROFILER_RULES if windows else ())]


def over_windows(job: RuleJobConfig) -> RuleJobConfig:
    """Return a rule job over profiler data, with the length of its windows."""
    return replace(job, profiler=True, window_us=_length(job))


def _length(job: RuleJobConfig) -> int:
    """Return the length that parameters give, or the rule's own; a wrong one is told by others."""
    rule_class = job.loaded.rule_class
    declared = [one.default for one in rule_class.PARAMS if one.name == LENGTH]
    argument = inspect.signature(rule_class).parameters.get(LENGTH)
    own = [] if argument is None else [argument.default]
    for given in (job.parameters.get(LENGTH), *declared, *own):
        try:
            length = int(given)
        except (TypeError, ValueError):
            continue
        if length > 0:
            return max(length, LEAST_SCAN_INTERVAL_US)
    return DEFAULT_SCAN_INTERVAL_US


def placed(
    jobs: Iterable[RuleJobConfig], trial: str | None, profiler_trial: str | None
) -> tuple[RuleJobConfig, ...]:
    """Return rule jobs, each over the one of two trials that its rule judges.

    Raises
    ------
    UsageError
        If that trial was not given.
    """
    found = []
    for job in jobs:
        windows = job.profiler or judges_windows(job.loaded, otherwise=trial is None)
        windows = windows and (job.loaded.builtin or job.profiler or profiler_trial is not None)
        if windows and profiler_trial is None:
            raise UsageError(_lacks(job, "profiler data", "--profiler-trial"))
        if not windows and trial is None:
            raise UsageError(_lacks(job, "tensors", "--trial"))
        found.append(over_windows(job) if windows else job)
    return tuple(found)


def _lacks(job: RuleJobConfig, data: str, option: str) -> str:
    return f"Rule {job.configuration_name!r} judges {data}: give {option} PATH."
