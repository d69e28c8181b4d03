"""RuleJobConfig and EvaluationConfig: what is to be evaluated, decided before anything runs."""

import enum
import re
from collections.abc import Mapping, Sequence
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
ACTIONS: Final = "action_json"
STOP_FILE: Final = "SAGEMAKER_ENV_RULE_STOP_SIGNAL_FILE"
WINDOW: Final = "SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW"
DEFAULT_WINDOW: Final = 1000

_S3: Final = re.compile(r"s3[an]?:/", re.IGNORECASE)
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


class RuleMode(enum.StrEnum):
    """What comes of a condition met, besides that it is told."""

    ENFORCE = "enforce"  # exit code, stopped training, actions
    OBSERVE = "observe"  # nothing


class Isolation(enum.StrEnum):
    """What stands between rules, and between them and what is not theirs."""

    NONE = "none"  # one process, and one read of the trial
    PROCESS = "process"  # a process each, which sees little of the environment


@dataclass(frozen=True, slots=True)
class RuleRequest:
    """A rule as the user asked for it: by name, by source file, or both; `id` if they gave one.

    The source is a path or an address.
    """

    id: str | None = None
    name: str | None = None
    source: str | None = None


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


def parse_requests(rules: Sequence[str], sources: Sequence[str]) -> list[RuleRequest]:
    """Return the rules that ``--rule [ID=]NAME`` and ``--source [ID=]FILE`` ask for.

    A name and a file with the same ID are one rule: the class of that name in that file. So are
    one name and one file that have no ID.

    Raises
    ------
    UsageError
        If nothing is asked for, an ID is given twice, or it cannot be told what belongs together.
    """
    names = [_split_id(text, "--rule") for text in rules]
    files = [_split_id(text, "--source") for text in sources]
    _check_ids([one for one, _ in names], "--rule")
    _check_ids([one for one, _ in files], "--source")
    free_names = [name for one, name in names if one is None]
    free_files = [file for one, file in files if one is None]
    if free_names and free_files and (len(free_names), len(free_files)) != (1, 1):
        msg = (
            f"{len(free_names)} rules and {len(free_files)} source files have no ID: it cannot be "
            "told which belong together. Give IDs: --rule ID=NAME --source ID=FILE."
        )
        raise UsageError(msg)
    file_of = dict(files)
    found = [RuleRequest(one, name, file_of.get(one)) for one, name in names]
    taken = {one for one, _ in names}
    found += [RuleRequest(one, None, file) for one, file in files if one not in taken]
    if not found:
        msg = "No rule was given: give --rule NAME, --source FILE or both."
        raise UsageError(msg)
    return found


def _split_id(text: str, option: str) -> tuple[str | None, str]:
    """Return the ID, or None, and what stands behind it.

    >>> _split_id("first=AllZero", "--rule"), _split_id("dir/a=b.py", "--source")
    (('first', 'AllZero'), (None, 'dir/a=b.py'))
    """
    one, equals, rest = text.partition("=")
    # A path may hold the sign; the name of a rule cannot.
    if not equals or (option == "--source" and not _ID.fullmatch(one)):
        one, rest = "", text
    if not rest:
        msg = f"Option {option} needs a value behind {text!r}."
        raise UsageError(msg)
    return one or None, rest


def _check_ids(ids: Sequence[str | None], option: str) -> None:
    for one in ids:
        if one is not None and ids.count(one) > 1:
            msg = f"ID {one!r} is given to two {option} options. IDs must differ."
            raise UsageError(msg)


def parse_parameters(texts: Sequence[str], ids: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return parameters by ID of the rule job, from ``-p [ID.]key=value``.

    Raises
    ------
    UsageError
        If a text is not of that form, has no ID where there are several rules, or is given twice.
    """
    found: dict[str, dict[str, str]] = {one: {} for one in ids}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            msg = f"A parameter must be key=value, got {text!r}."
            raise UsageError(msg)
        one, name = _owner(key, ids)
        if name in found[one]:
            msg = f"Parameter {name!r} of rule {one!r} is given twice."
            raise UsageError(msg)
        found[one][name] = value
    return found


def _owner(key: str, ids: Sequence[str]) -> tuple[str, str]:
    """Return the rule job that a parameter goes to, and the parameter's own name."""
    for one in sorted(ids, key=len, reverse=True):
        if key.startswith(f"{one}.") and len(key) > len(one) + 1:
            return one, key[len(one) + 1 :]
    if len(ids) == 1:
        return ids[0], key
    msg = (
        f"Parameter {key!r} does not say which rule it goes to. "
        f"Write ID.{key.rpartition('.')[2]}=value with an ID of {', '.join(map(repr, ids))}."
    )
    raise UsageError(msg)


def parse_modes(texts: Sequence[str], ids: Sequence[str]) -> dict[str, RuleMode]:
    """Return modes by ID of the rule job, from ``--mode [ID=]enforce|observe``.

    A mode without an ID is that of all rule jobs that are not named.

    Raises
    ------
    UsageError
        If a text is not of that form, names no rule job, or a mode is given twice.
    """
    found: dict[str | None, RuleMode] = {}
    for text in texts:
        before, equals, word = text.rpartition("=")
        one = before if equals else None
        if one is not None and one not in ids:
            from smdebug.rules.params import did_you_mean  # noqa: PLC0415 - only when it is needed

            known = ", ".join(map(repr, ids))
            hint = did_you_mean(one, ids)
            msg = f"Mode {text!r} is for no rule of this evaluation.{hint} Its IDs: {known}."
            raise UsageError(msg)
        if one in found:
            whose = "all rules" if one is None else f"rule {one!r}"
            msg = f"The mode of {whose} is given twice."
            raise UsageError(msg)
        found[one] = _mode(word)
    return {one: found.get(one, found.get(None, RuleMode.ENFORCE)) for one in ids}


def _mode(word: str) -> RuleMode:
    try:
        return RuleMode(word)
    except ValueError:
        msg = f"A mode must be 'enforce' or 'observe', got {word!r}."
        raise UsageError(msg) from None


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
