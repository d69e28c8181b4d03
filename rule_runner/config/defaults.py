"""Defaults and modes of an evaluation, and the names that its configuration gives a meaning."""

import enum
from typing import Final, Literal

DEFAULT_IDLE_TIMEOUT_S: Final = 3600.0
DEFAULT_END_GRACE_S: Final = 1.0
DEFAULT_EVENT_FILE_WAIT_S: Final = 10.0
DEFAULT_POLL_MAX_S: Final = 10.0
DEFAULT_ACTION_TIMEOUT_S: Final = 30.0
DEFAULT_SCAN_INTERVAL_US: Final = 60_000_000
LEAST_SCAN_INTERVAL_US: Final = 100_000  # metrics are sampled no more often
EVERY_RULE: Final = "all"
FITTING_RULES: Final = "auto"
BASELINE: Final = "Baseline"  # the rule of --baseline
ACTIONS: Final = "action_json"
STOP_FILE: Final = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
Issue = Literal["error", "warning"]  # severities of issues
WINDOW: Final = "SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW"
DEFAULT_WINDOW: Final = 1000


class RuleMode(enum.StrEnum):
    """What happens on a finding: enforce or report only."""

    ENFORCE = "enforce"  # sets the exit code, stops the training, runs actions
    OBSERVE = "observe"  # reports only


class Isolation(enum.StrEnum):
    """How rules are isolated from each other and from the runner."""

    NONE = "none"  # all rules share one process and each read of the trial
    PROCESS = "process"  # one process per rule, with a reduced environment
