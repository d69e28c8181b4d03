"""WatchConfig: what ``fleet.yaml`` says, checked."""

import os
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from rule_core.rules.params import did_you_mean
from rule_core.sources.names import NameTable
from rule_core.sources.options import SourceOptions
from rule_core.storage.uri import is_s3
from rule_runner.config.defaults import BASELINE, FITTING_RULES
from rule_runner.config.documents import TextError, parse, read_text
from rule_runner.config.output_names import OutputTemplate
from rule_runner.durations import Duration, seconds_of
from rule_runner.errors import JobError, UsageError, translated
from rule_runner.executors.opening import check_form
from rule_runner.text_files import shown
from rule_runner.watch.bucket_queue import QUEUE

DEFAULT_OUTPUT: Final = "rule-output/watch/{name}-{id}"
LOCAL: Final = "local"
KIND: Final = "apprise:"  # of sinks for alerts
_ADDRESS: Final = re.compile(r"https?://[^\s/?#]+(/[^\s?#]*)?")
_UNKNOWN: Final = re.compile(r"unknown field `(.*?)`")

Texts = tuple[Annotated[str, Meta(min_length=1)], ...]


class Assignment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rules for the trials that a pattern fits.

    Attributes
    ----------
    trials
        A pattern, in which ``*`` stands for any text, of a trial's path or address.
    rules, parameters, modes
        As the options ``--rule``, ``--param`` and ``--mode`` of ``evaluate``.
    job
        A job file with the rules; excludes the other fields.
    ignore
        Whether trials are not judged at all.
    """

    trials: Annotated[str, Meta(min_length=1)] = "*"
    rules: Texts = ()
    parameters: Texts = ()
    modes: Texts = ()
    job: str | None = None
    ignore: bool = False

    @property
    def is_fitting(self) -> bool:
        """Whether the rules are those that fit each trial, with or without a baseline."""
        return {FITTING_RULES} <= {*self.rules} <= {FITTING_RULES, BASELINE}


class AlertsConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where alerts go, and how many.

    Attributes
    ----------
    sinks
        Services for messages: ``apprise:`` and an address of Apprise, or ``apprise:$NAME``, the
        variable that has it.
    severity
        Only issues that are at least so serious.
    most_per_hour
        How many messages on one rule each are sent within an hour, at most. Further alerts wait
        for a digest.
    digest_every
        The shortest time between two digests.
    """

    sinks: Annotated[Texts, Meta(min_length=1)]
    severity: Literal["error", "warning"] = "warning"
    most_per_hour: Annotated[int, Meta(ge=0, le=1000)] = 10
    digest_every: Duration = "15m"


class WatchConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to watch, how to judge it, and where the results go.

    Attributes
    ----------
    roots
        Folders and ``s3://`` addresses with trials at and below them; ``*`` stands for any part
        of a name.
    judge
        The rules by pattern. The first pattern that fits a trial decides; a trial that none fits
        is ignored.
    output
        The output of each trial; see `OutputTemplate`.
    sources
        How to read outputs of other writers.
    sinks, actions
        As the options of ``evaluate``.
    executor
        Where evaluations run: ``local``, as processes on this machine, or on Ray or Dask, as
        ``--executor`` of ``fleet run`` names them.
    max_concurrent
        How many evaluations run at the same time, at most.
    quiet_after
        An evaluation ends after this time without new data, and continues when data arrive. A trial
        that is already quiet is judged as far as it goes.
    retention
        Which outputs to keep: the newest, such as ``500``, or those that ended within a time,
        such as ``30d``.
    look_every
        How long to wait between two looks at a root in S3.
    queue
        The address of a queue of SQS that gets the notifications of buckets: a root in S3 is then
        looked at when something new was written, too.
    alerts
        Messages for people about issues; None: none.
    public_url
        The address under which people see the pages of `serve`, for links in alerts.
    """

    roots: Texts = ()
    judge: tuple[Assignment, ...] = (Assignment(rules=(FITTING_RULES,)),)
    output: str = DEFAULT_OUTPUT
    sources: SourceOptions = SourceOptions()
    sinks: Texts = ()
    actions: Texts = ()
    executor: str = LOCAL
    max_concurrent: Annotated[int, Meta(ge=1, le=1000)] = 4 * (os.cpu_count() or 1)
    quiet_after: Duration = "15m"
    retention: str | int | None = None
    look_every: Duration = "30s"
    queue: str | None = None
    alerts: AlertsConfig | None = None
    public_url: str | None = None

    @property
    def quiet_s(self) -> float:
        """Seconds without new data after which an evaluation ends."""
        return seconds_of(self.quiet_after)

    def assignment(self, trial: str) -> Assignment | None:
        """Return the rules for a trial; None if it is ignored."""
        for assignment in self.judge:
            if fnmatchcase(trial, assignment.trials):
                return None if assignment.ignore else assignment
        return None


def read_config(path: Path) -> WatchConfig:
    """Return the configuration in a file; its relative paths are relative to the file's folder.

    Raises
    ------
    JobError
        If it cannot be read, or is not valid.
    """
    place = f"configuration {shown(path)}"
    with translated(JobError, TextError, before=f"The {place} does not parse: ", after="."):
        raw = parse(read_text(path, "Configuration"), path.suffix)
    config = checked(raw, place)
    return _placed(config, path.absolute().parent)


def checked(raw: Any, place: str) -> WatchConfig:
    """Return a configuration from parsed JSON or YAML.

    Raises
    ------
    JobError
        If it is not valid; `place` names it.
    """
    if raw is None:
        raw = {}
    try:
        config = msgspec.convert(raw, WatchConfig, strict=False)
        _check(config)
    except (msgspec.ValidationError, ValueError, UsageError) as err:
        raise JobError(
            f"The {place} is not valid: {str(err).rstrip('.')}.{_hint(str(err))}"
        ) from err
    return config


def _hint(problem: str) -> str:
    """Return where an unknown field belongs, or which one is meant; "" if that is unknown."""
    unknown = _UNKNOWN.search(problem)
    if unknown is None:
        return ""
    sections = {"judge": Assignment, "alerts": AlertsConfig}
    for section, struct in sections.items():
        if unknown[1] in struct.__struct_fields__:
            return f" It belongs to {section!r}."
    section = next((name for name in sections if f"$.{name}" in problem), "")
    return did_you_mean(unknown[1], sections.get(section, WatchConfig).__struct_fields__)


def _check(config: WatchConfig) -> None:
    """Check what types cannot express."""
    durations = {"quiet_after": config.quiet_after, "look_every": config.look_every}
    if config.alerts is not None:
        durations["alerts.digest_every"] = config.alerts.digest_every
    for name, duration in durations.items():
        with translated(ValueError, ValueError, before=f"{name} "):
            seconds_of(duration)
    check_output(config.output)
    NameTable(config.sources)
    _check_executor(config.executor)
    for sink in () if config.alerts is None else config.alerts.sinks:
        if not sink.removeprefix(KIND) or not sink.startswith(KIND):
            kind = sink.partition(":")[0]
            raise ValueError(f"alerts.sinks must begin with '{KIND}', got {kind!r:.100}")
    if config.queue is not None and not QUEUE.fullmatch(config.queue):
        raise ValueError(
            "queue must be the address of a queue, such as "
            f"https://sqs.us-east-1.amazonaws.com/123456789012/runs, got {config.queue!r:.100}"
        )
    url = config.public_url
    if url is not None and not _ADDRESS.fullmatch(url):
        raise ValueError(
            f"public_url must be an address such as https://rules.example.org, got {url!r:.100}"
        )
    for number, assignment in enumerate(config.judge):
        named = bool(assignment.rules), assignment.job is not None, assignment.ignore
        if sum(named) != 1:
            raise ValueError(f"judge[{number}] must have one of 'rules', 'job' and 'ignore: true'")


def _check_executor(spec: str) -> None:
    check_form(spec)
    if spec.startswith(f"{LOCAL}:"):
        raise ValueError(
            f"executor must be 'local', with the number as max_concurrent, got {spec!r}"
        )


def check_output(output: str) -> None:
    """Check a template of output folders.

    Raises
    ------
    ValueError
        If it does not name a folder for each trial, all of them in one folder.
    """
    with translated(ValueError, ValueError, before="output "):
        is_flat = OutputTemplate(output).is_flat
    if not is_flat:
        raise ValueError(
            f"output must have its fields after the last '/', as {DEFAULT_OUTPUT}, got {output!r}"
        )


def _placed(config: WatchConfig, folder: Path) -> WatchConfig:
    """Return the configuration with absolute paths."""

    def absolute(path: str) -> str:
        return path if is_s3(path) else str(folder / Path(path).expanduser())

    judge = (
        item if item.job is None else replace(item, job=absolute(item.job)) for item in config.judge
    )
    return replace(
        config,
        roots=tuple(map(absolute, config.roots)),
        public_url=config.public_url and config.public_url.rstrip("/"),
        judge=tuple(judge),
        output=absolute(config.output),
    )
