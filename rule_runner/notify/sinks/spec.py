"""Parser of ``--sink`` and `SINKS`."""

import hashlib
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TextIO

from rule_core.rules.params import did_you_mean
from rule_runner.errors import UsageError
from rule_runner.notify.messenger import masked as masked_service
from rule_runner.notify.sinks.apprise import AppriseSink
from rule_runner.notify.sinks.base import EventSink
from rule_runner.notify.sinks.cloudwatch_logs import GROUP, CloudWatchLogsSink
from rule_runner.notify.sinks.cloudwatch_metrics import NAMESPACE, CloudWatchMetricsSink, EmfSink
from rule_runner.notify.sinks.eventbridge import EventBridgeSink
from rule_runner.notify.sinks.local import FileSink, StdoutSink
from rule_runner.notify.sinks.sns import SnsSink
from rule_runner.notify.sinks.webhook import WebhookSink
from rule_runner.notify.spec_checks import check_kind, check_webhook
from rule_runner.notify.webhook import masked, secret_of_environment

SINKS: Final = "RULE_RUNNER_SINKS"
SINK_DEADLINE: Final = "RULE_RUNNER_SINK_DEADLINE"  # seconds
REGION: Final = "region"
ARN_PARTS: Final = 6
ON_STDOUT: Final = frozenset({"stdout", "emf"})

_REGION: Final = re.compile(r"[a-z0-9-]{1,64}")


@dataclass(frozen=True, slots=True)
class SinkSpec:
    """One sink as specified by the user.

    Attributes
    ----------
    region
        The AWS region; None for the default one.
    stream
        Standard output for the sinks that write to it.
    """

    target: str
    region: str | None
    stream: TextIO


@dataclass(frozen=True, slots=True)
class SinkKind:
    """A kind of sink: its options, and what it needs.

    Attributes
    ----------
    target
        Description of the text after the colon; "" if there is none.
    pattern
        Pattern of that text; it is optional if the pattern matches "".
    regional
        Whether ``,region=R`` may follow.
    is_path
        Whether that text is a path of this machine.
    service
        ``aws`` if it sends events to AWS, ``other`` if to another service; "" if to this machine.
    """

    make: Callable[[SinkSpec], EventSink]
    target: str = ""
    pattern: str = ""
    regional: bool = False
    is_path: bool = False
    service: Literal["", "aws", "other"] = ""


_NAMESPACE: Final = (
    "a namespace that does not begin with 'AWS/'",
    r"(?!AWS/)[A-Za-z0-9._/#-][A-Za-z0-9._/#:-]{0,254}|",
)
_KINDS: Final[Mapping[str, SinkKind]] = {
    "stdout": SinkKind(lambda spec: StdoutSink(spec.stream)),
    "file": SinkKind(lambda spec: FileSink(Path(spec.target)), "a path", r"[^\0]+", is_path=True),
    "eventbridge": SinkKind(
        lambda spec: EventBridgeSink(spec.target, spec.region),
        "the name or ARN of an event bus",
        r"[A-Za-z0-9._/:-]{0,1600}",
        regional=True,
        service="aws",
    ),
    "cloudwatch-metrics": SinkKind(
        lambda spec: CloudWatchMetricsSink(spec.target or NAMESPACE, spec.region),
        *_NAMESPACE,
        regional=True,
        service="aws",
    ),
    "emf": SinkKind(lambda spec: EmfSink(spec.target or NAMESPACE, spec.stream), *_NAMESPACE),
    "cloudwatch-logs": SinkKind(
        lambda spec: CloudWatchLogsSink(spec.target or GROUP, spec.region),
        "a log group that does not begin with 'aws/'",
        r"(?!aws/)[A-Za-z0-9._/#-]{0,512}",
        regional=True,
        service="aws",
    ),
    "webhook": SinkKind(
        lambda spec: WebhookSink(spec.target, secret_of_environment()),
        "an https:// address",
        r"(?s:.+)",
        service="other",
    ),
    "sns": SinkKind(
        lambda spec: SnsSink(spec.target, spec.region),
        "the ARN of a topic",
        r"arn:[a-z-]+:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}(\.fifo)?",
        service="aws",
    ),
    "apprise": SinkKind(
        lambda spec: AppriseSink(spec.target),
        "an address of Apprise, or $ and the name of the variable that has it",
        r"\$[A-Za-z_][A-Za-z0-9_]*|[^$](?s:.*)",
        service="other",
    ),
}


def parse_sinks(texts: Sequence[str], stdout: TextIO | None = None) -> list[EventSink]:
    """Return the sinks of ``--sink KIND[:TARGET][,region=R]``.

    Parameters
    ----------
    stdout
        Standard output of these sinks.

    Raises
    ------
    UsageError
        If a text is invalid, or two are the same.
    """
    sinks = [_sink(text, stdout or sys.stdout) for text in texts]
    names = [sink.name for sink in sinks]
    for sink in sinks:
        if names.count(sink.name) > 1:
            raise UsageError(f"Sink {sink.label!r} is given twice.")
    return sinks


def sink_kind(sink: str) -> SinkKind:
    """Return the kind of a sink.

    Raises
    ------
    UsageError
        If there is no such kind.
    """
    name, _ = _split_kind(sink)
    check_kind("sink", name, _KINDS)
    return _KINDS[name]


def sink_variable(sink: str) -> str | None:
    """Return the name of the environment variable that has the target of a sink.

    >>> sink_variable("apprise:$ALERTS"), sink_variable("file:$ALERTS")
    ('ALERTS', None)
    """
    _, target = _split_kind(sink)
    is_variable = target.startswith("$") and not sink_kind(sink).is_path
    return target[1:] if is_variable else None


def _split_kind(sink: str) -> tuple[str, str]:
    name = re.split("[:,]", sink, maxsplit=1)[0]
    return name, sink[len(name) :].removeprefix(":")


def sinks_in(environment: Mapping[str, str]) -> list[str]:
    """Return the sinks in variable `SINKS`, which are separated by white space."""
    return environment.get(SINKS, "").split()


def writes_to_stdout(texts: Sequence[str]) -> str | None:
    """Return the first kind of sink in `texts` that writes to standard output."""
    kinds = (text.partition(":")[0] for text in texts)
    return next((kind for kind in kinds if kind in ON_STDOUT), None)


def _sink(text: str, stdout: TextIO) -> EventSink:
    kind, target_text = _split_kind(text)
    options = sink_kind(text)
    if kind == "webhook":
        check_webhook(target_text)
        text = f"webhook:{masked(target_text)}"
    if kind == "apprise":
        text = f"apprise:{masked_service(target_text)}"
    target, region = _split_region(target_text, kind) if options.regional else (target_text, None)
    if not re.fullmatch(options.pattern, target):
        expected = f"needs {options.target}" if options.target else "takes no value"
        raise UsageError(f"Sink {kind!r} {expected} after its colon, got {target!r}.")
    parts = target.split(":")
    if region is None and len(parts) >= ARN_PARTS and parts[0] == "arn":
        region = parts[3]
    sink = options.make(SinkSpec(target, region, stdout))
    sink.name, sink.label = _name(kind, target_text), text
    return sink


def _split_region(target_text: str, kind: str) -> tuple[str, str | None]:
    """Return target and region."""
    target, *options = target_text.split(",")
    values = dict(option.partition("=")[::2] for option in options)
    for name in values:
        if name != REGION:
            hint = did_you_mean(name, [REGION])
            raise UsageError(f"Sink {kind!r} has no option {name!r}.{hint} Its option is 'region'.")
    region = values.get(REGION)
    if region is not None and not _REGION.fullmatch(region):
        raise UsageError(
            f"Region of sink {kind!r} must be letters, digits and hyphens, got {region!r}."
        )
    return target, region


def _name(kind: str, target_text: str) -> str:
    """Return a name that is unique to a sink and shows no address."""
    return f"{kind}-{hashlib.sha256(target_text.encode()).hexdigest()[:8]}" if target_text else kind
