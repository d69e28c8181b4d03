"""Parsing: from what the command line or the environment says to sinks, before anything runs."""

import hashlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TextIO

from rule_runner.errors import UsageError
from rule_runner.sinks.cloudwatch_logs import GROUP, CloudWatchLogsSink
from rule_runner.sinks.cloudwatch_metrics import CloudWatchMetricsSink, EmfSink
from rule_runner.sinks.eventbridge import EventBridgeSink
from rule_runner.sinks.local import FileSink, StdoutSink
from rule_runner.sinks.numbers import NAMESPACE
from rule_runner.sinks.protocol import EventSink
from rule_runner.sinks.sns import SnsSink
from rule_runner.sinks.webhook import WebhookSink
from rule_runner.webhook import WebhookError, check, masked, secret_of_environment
from smdebug.rules.params import did_you_mean

SINKS: Final = "RULE_RUNNER_SINKS"
SINK_DEADLINE: Final = "RULE_RUNNER_SINK_DEADLINE"  # seconds
REGION: Final = "region"
ARN_PARTS: Final = 6
ON_STDOUT: Final = frozenset({"stdout", "emf"})

_REGION: Final = re.compile(r"[a-z0-9-]{1,64}")


@dataclass(frozen=True, slots=True)
class Spec:
    """One sink as it was asked for.

    Attributes
    ----------
    name
        See `EventSink`.
    label
        The same text, without what may be secret.
    stream
        What standard output is to the sinks that write to it.
    """

    kind: str
    target: str
    region: str | None
    name: str
    label: str
    stream: TextIO | None


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a kind of sink takes behind its name.

    Attributes
    ----------
    target
        What the text behind the colon is, for people; "" if none may be there.
    pattern
        What it looks like; one that matches "" may be left out.
    regional
        Whether ``,region=R`` may follow.
    """

    make: Callable[[Spec], EventSink]
    target: str = ""
    pattern: str = ""
    regional: bool = False


def _webhook(spec: Spec) -> EventSink:
    return WebhookSink(spec.target, secret_of_environment(), spec.name, spec.label)


_KINDS: Final[Mapping[str, _Kind]] = {
    "stdout": _Kind(lambda spec: StdoutSink(spec.stream, spec.name, spec.label)),
    "file": _Kind(
        lambda spec: FileSink(Path(spec.target), spec.name, spec.label), "a path", r"[^\0]+"
    ),
    "eventbridge": _Kind(
        lambda spec: EventBridgeSink(spec.target, spec.region, spec.name, spec.label),
        "the name or ARN of an event bus",
        r"[A-Za-z0-9._/:-]{0,1600}",
        regional=True,
    ),
    "cloudwatch-metrics": _Kind(
        lambda spec: CloudWatchMetricsSink(
            spec.target or NAMESPACE, spec.region, spec.name, spec.label
        ),
        "a namespace that does not begin with 'AWS/'",
        r"(?!AWS/)[A-Za-z0-9._/#-][A-Za-z0-9._/#:-]{0,254}|",
        regional=True,
    ),
    "emf": _Kind(
        lambda spec: EmfSink(spec.target or NAMESPACE, spec.stream, spec.name, spec.label),
        "a namespace that does not begin with 'AWS/'",
        r"(?!AWS/)[A-Za-z0-9._/#-][A-Za-z0-9._/#:-]{0,254}|",
    ),
    "cloudwatch-logs": _Kind(
        lambda spec: CloudWatchLogsSink(spec.target or GROUP, spec.region, spec.name, spec.label),
        "a log group that does not begin with 'aws/'",
        r"(?!aws/)[A-Za-z0-9._/#-]{0,512}",
        regional=True,
    ),
    "webhook": _Kind(_webhook, "an https:// address", r"(?s:.+)"),
    "sns": _Kind(
        lambda spec: SnsSink(spec.target, spec.region, spec.name, spec.label),
        "the ARN of a topic",
        r"arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?",
    ),
}


def parse_sinks(texts: Sequence[str], stdout: TextIO | None = None) -> list[EventSink]:
    """Return the sinks that ``--sink KIND[:TARGET][,region=R]`` asks for.

    Parameters
    ----------
    stdout
        What standard output is to them.

    Raises
    ------
    UsageError
        If one cannot be told, or is given twice.
    """
    specs = [_parse(text, stdout or sys.stdout) for text in texts]
    names = [spec.name for spec in specs]
    for spec in specs:
        if names.count(spec.name) > 1:
            msg = f"Sink {spec.label!r} is given twice."
            raise UsageError(msg)
    return [_KINDS[spec.kind].make(spec) for spec in specs]


def sinks_of(environment: Mapping[str, str]) -> list[str]:
    """Return the sinks that `SINKS` holds, with white space between them."""
    return environment.get(SINKS, "").split()


def writes_to_stdout(texts: Sequence[str]) -> str | None:
    """Return the first kind of sink among `texts` that writes to standard output."""
    kinds = (text.partition(":")[0] for text in texts)
    return next((kind for kind in kinds if kind in ON_STDOUT), None)


def _parse(text: str, stdout: TextIO) -> Spec:
    kind = re.split("[:,]", text, maxsplit=1)[0]
    rest = text[len(kind) :].removeprefix(":")
    if kind not in _KINDS:
        known = ", ".join(map(repr, _KINDS))
        msg = f"Unknown sink {kind!r}.{did_you_mean(kind, _KINDS)} Sinks are: {known}."
        raise UsageError(msg)
    if kind == "webhook":
        return _parse_webhook(rest, stdout)
    found = _KINDS[kind]
    target, region = _split_region(rest, kind) if found.regional else (rest, None)
    if not re.fullmatch(found.pattern, target):
        wanted = f"needs {found.target}" if found.target else "takes nothing"
        msg = f"Sink {kind!r} {wanted} behind its colon, got {target!r}."
        raise UsageError(msg)
    region = region or _region_of_arn(target)
    return Spec(kind, target, region, _name(kind, rest), text, stdout)


def _parse_webhook(url: str, stdout: TextIO) -> Spec:
    try:
        check(url)
    except WebhookError as err:
        raise UsageError(str(err)) from err
    return Spec("webhook", url, None, _name("webhook", url), f"webhook:{masked(url)}", stdout)


def _split_region(rest: str, kind: str) -> tuple[str, str | None]:
    """Return target and region."""
    target, *options = rest.split(",")
    given = dict(option.partition("=")[::2] for option in options)
    for name in given:
        if name != REGION:
            hint = did_you_mean(name, [REGION])
            msg = f"Sink {kind!r} has no option {name!r}.{hint} Its option is 'region'."
            raise UsageError(msg)
    region = given.get(REGION)
    if region is not None and not _REGION.fullmatch(region):
        msg = f"Region of sink {kind!r} must be letters, digits and hyphens, got {region!r}."
        raise UsageError(msg)
    return target, region


def _region_of_arn(target: str) -> str | None:
    """Return the region that an ARN names."""
    parts = target.split(":")
    return parts[3] if len(parts) >= ARN_PARTS and parts[0] == "arn" else None


def _name(kind: str, rest: str) -> str:
    """Return a name that two different sinks do not share, and that shows no address."""
    return f"{kind}-{hashlib.sha256(rest.encode()).hexdigest()[:8]}" if rest else kind
