"""Which rules judge time windows of profiler data, and how long those windows are."""

import inspect
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from rule_runner.config.defaults import DEFAULT_SCAN_INTERVAL_US, LEAST_SCAN_INTERVAL_US
from rule_runner.config.model import RuleJobConfig
from rule_runner.errors import UsageError
from rule_runner.loading.loader import LoadedRule
from rule_runner.loading.parameters import accepts

LENGTH: Final = "scan_interval_us"


def judges_windows(loaded: LoadedRule, *, otherwise: bool) -> bool:
    """Return whether a rule judges profiler data.

    Built-in rules are listed in a table. A custom rule does if its constructor takes the length of
    a window; if it does not, the answer is `otherwise`.
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
    """Return the length in the parameters, or the rule's default; invalid lengths are skipped."""
    rule_class = job.loaded.rule_class
    declared = [param.default for param in rule_class.PARAMS if param.name == LENGTH]
    argument = inspect.signature(rule_class).parameters.get(LENGTH)
    own = [] if argument is None else [argument.default]
    for value in (job.parameters.get(LENGTH), *declared, *own):
        try:
            length = int(value)
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
    placed_jobs = []
    for job in jobs:
        windows = job.profiler or judges_windows(job.loaded, otherwise=trial is None)
        windows = windows and (job.loaded.builtin or job.profiler or profiler_trial is not None)
        if windows and profiler_trial is None:
            raise UsageError(_lacks(job, "profiler data", "--profiler-trial"))
        if not windows and trial is None:
            raise UsageError(_lacks(job, "tensors", "--trial"))
        placed_jobs.append(over_windows(job) if windows else job)
    return tuple(placed_jobs)


def _lacks(job: RuleJobConfig, data: str, option: str) -> str:
    return f"Rule {job.configuration_name!r} judges {data}: give {option} PATH."
