"""RuleJobConfig and EvaluationConfig: what is to be evaluated, decided before anything runs."""

import enum
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rule_runner.errors import UsageError

if TYPE_CHECKING:
    from rule_runner.loader import LoadedRule
    from smdebug.rules.action.base import Action

DEFAULT_IDLE_TIMEOUT_S: Final = 3600.0
DEFAULT_END_GRACE_S: Final = 1.0
DEFAULT_EVENT_FILE_WAIT_S: Final = 10.0
DEFAULT_POLL_MAX_S: Final = 10.0
DEFAULT_ACTION_TIMEOUT_S: Final = 30.0
DEFAULT_SCAN_INTERVAL_US: Final = 60_000_000
LEAST_SCAN_INTERVAL_US: Final = 100_000  # metrics are sampled no more often
ACTIONS: Final = "action_json"
STOP_FILE: Final = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
WINDOW: Final = "SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW"
DEFAULT_WINDOW: Final = 1000

_S3: Final = re.compile(r"s3[an]?:/", re.IGNORECASE)


class RuleMode(enum.StrEnum):
    """What comes of a condition met, besides that it is told."""

    ENFORCE = "enforce"  # exit code, stopped training, actions
    OBSERVE = "observe"  # nothing


class Isolation(enum.StrEnum):
    """What stands between rules, and between them and what is not theirs."""

    NONE = "none"  # one process, and one read of the trial
    PROCESS = "process"  # a process each, which sees little of the environment


@dataclass(frozen=True, slots=True)
class RuleJobConfig:
    """One rule job: the rule class, its name among the rule jobs, and its parameters as text.

    Attributes
    ----------
    operator_actions
        What is done at the first condition met, besides those of `actions`, the JSON text.
    mode
        What comes of a condition met.
    lacking
        A sentence on what the rule needs and was not given: it cannot be judged; "" if nothing.
    refused
        Why the rule job ends with an error before anything runs; "" if it does not.
    other_trials
        Paths of trials that this rule compares with, besides those of the evaluation.
    folder
        Name of its folder among others'; by default the configuration's.
    profiler
        Whether it judges time windows of profiler data, not steps of tensors.
    window_us
        How long those are, in microseconds.
    """

    configuration_name: str
    loaded: "LoadedRule"
    parameters: Mapping[str, str] = field(default_factory=dict)
    actions: str = ""
    start_step: int | None = None
    end_step: int | None = None
    mode: RuleMode = RuleMode.ENFORCE
    lacking: str = ""
    operator_actions: "tuple[Action, ...]" = ()
    refused: str = ""
    other_trials: tuple[str, ...] = ()
    folder: str = ""
    profiler: bool = False
    window_us: int = DEFAULT_SCAN_INTERVAL_US


@dataclass(frozen=True, slots=True)
class EvaluationConfig:
    """One evaluation: rule jobs over one trial, and how they run.

    Times are seconds. `start_step` and `end_step` of a rule job limit the steps it judges,
    ``start_step <= step < end_step``, never what the rule may look back at.

    Attributes
    ----------
    trial, other_trials
        Paths. Every rule gets the other trials, and those of its own besides.
    profiler_trial
        Path of the profiler data; None if that is `trial`.
    output
        Output folder: of the only rule job, or with a folder for each of several in it.
    own_folders
        Whether the only rule job has a folder in it too.
    notes
        Sentences for the result as a whole.
    wait
        Whether to follow a trial that has not ended.
    wait_for_trial
        How long to wait for the trial's folder to be there; 0 is not at all.
    timeout, idle_timeout
        Ends the evaluation after so long, or after so long without a new file; None is never.
    rule_timeout
        How long a rule may take for one step; with it each rule runs in a process of its own.
    isolate
        Whether it does so anyway, and sees only what it needs of the environment.
    end_grace
        How long to look for files of slow workers after the end mark, counted from the last one.
    event_file_wait
        How long to wait for the event file of an index file that is there.
    poll_max
        Longest pause between two looks at a trial in S3 that brings nothing new.
    action_timeout
        How long each action may take.
    dry_run
        Whether it is only said what actions would do.
    stop_files, stop_grace
        Evaluation stops when such a file is there and the time in it is `stop_grace` ago.
    profiler_stop_files
        Such a file ends the profiler data, as the end of the job does.
    """

    trial: str
    rules: tuple[RuleJobConfig, ...]
    output: Path
    other_trials: tuple[str, ...] = ()
    profiler_trial: str | None = None
    trial_name: str | None = None
    training_job_name: str | None = None
    keep_going: bool = False
    wait: bool = True
    wait_for_trial: float = 0.0
    timeout: float | None = None
    idle_timeout: float | None = DEFAULT_IDLE_TIMEOUT_S
    rule_timeout: float | None = None
    isolate: Isolation = Isolation.NONE
    end_grace: float = DEFAULT_END_GRACE_S
    event_file_wait: float = DEFAULT_EVENT_FILE_WAIT_S
    poll_max: float = DEFAULT_POLL_MAX_S
    window: int = DEFAULT_WINDOW
    stop_files: tuple[Path, ...] = ()
    profiler_stop_files: tuple[Path, ...] = ()
    stop_grace: float = 60.0
    action_timeout: float = DEFAULT_ACTION_TIMEOUT_S
    dry_run: bool = False
    overwrite: bool = False
    event_source: str = "rule-runner"
    own_folders: bool = False
    notes: tuple[str, ...] = ()

    def others_of(self, *rules: RuleJobConfig) -> tuple[str, ...]:
        """Return the paths of the other trials that rules get: those of all, then their own."""
        from rule_runner.binding import other_trials  # noqa: PLC0415 - reads the rules' classes

        own = [(*one.other_trials, *other_trials(one.loaded, one.parameters)) for one in rules]
        return tuple(dict.fromkeys(path for paths in (self.other_trials, *own) for path in paths))

    def trial_of(self, rule: RuleJobConfig) -> str:
        """Return the path of the trial that a rule judges."""
        return (self.profiler_trial or self.trial) if rule.profiler else self.trial

    @property
    def own_processes(self) -> bool:
        """Whether each rule runs in a process of its own."""
        return self.rule_timeout is not None or self.isolate is Isolation.PROCESS

    def folder_of(self, rule: RuleJobConfig) -> Path:
        """Return the output folder of one rule job."""
        if len(self.rules) == 1 and not self.own_folders:
            return self.output
        return self.output / (rule.folder or rule.configuration_name)


def check_is_local(place: str | Path, option: str) -> None:
    """Refuse an address in S3, also one that was taken for a path and has lost a slash.

    Raises
    ------
    UsageError
        If it is one.
    """
    if _S3.match(str(place)):
        msg = f"{option} must be a folder of this machine, got {str(place)!r}."
        raise UsageError(msg)


def default_output(trial: str, now: datetime) -> Path:
    """Return ``./rule-output/<trial name>-<time>/``.

    >>> default_output("/runs/mnist/", datetime(2026, 1, 2, 3, 4, 5))
    PosixPath('rule-output/mnist-20260102-030405')
    >>> default_output("s3://bucket/runs/mnist", datetime(2026, 1, 2, 3, 4, 5))
    PosixPath('rule-output/mnist-20260102-030405')
    """
    name = re.sub(r"[^A-Za-z0-9_.-]", "-", Path(trial).name).lstrip(".-") or "trial"
    return Path("rule-output") / f"{name[:100]}-{now:%Y%m%d-%H%M%S}"
