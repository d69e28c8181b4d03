"""Reader of JSON lines: one object a line, with a step and numbers."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from rule_core.reading.source_record import SourceRecord
from rule_core.sources.format import SourceFolder, Unreadable
from rule_core.sources.names import NAMES
from rule_core.sources.rows.line_source import LineFormat, LineSource
from rule_core.sources.rows.row_fields import (
    MetricStreams,
    brief,
    counts_of,
    first_count,
    is_counter,
    to_number,
)
from rule_core.sources.rows.row_steps import counter_rank
from rule_core.sources.text.compressed_file import plain_name

MAX_DEPTH: Final = 16  # of nested objects
MAX_NAME: Final = 1000  # characters
_STATE: Final = "trainer_state.json"
_SURE: Final = (".jsonl", ".ndjson")
_LOGS: Final = re.compile(
    r"(?i).*\.(log|out|txt)|.*(hist|log|metric|progress|result|scalar|train)[^/]*\.json"
)
SETTINGS: Final = frozenset({"args", "config", "hparams", "hyperparameters"})  # in each row
_WRAPPERS: Final = frozenset({"data", "scalars", "values"})  # objects whose names say nothing
_NAMED: Final = frozenset({"name", "value"})  # an object that is a field
_STATISTICS: Final = frozenset({"mean", "std", "num"})  # an object that is one value
# Findings of rule-runner, which have steps too, are beside one of these; the second is old.
_OWN: Final = frozenset({"results.json", "rule_result.json"})
_FINDINGS: Final = "findings.jsonl"
_decoder: Final = msgspec.json.Decoder()


class JsonLinesSource(LineSource):
    """Reads one file of JSON lines. See ``docs/sources/README.md`` for what it accepts."""

    def begin(self) -> None:
        """Forget the rows; see `LineSource`."""
        super().begin()
        self._streams = MetricStreams()

    def add_lines(self, lines: Iterator[str], first: int, record: SourceRecord) -> None:
        """Pass the objects on; see `LineSource`."""
        is_new = self.delivered.is_new
        for position, line in enumerate(lines, first):
            if not line or line.isspace() or not is_new(line):
                continue
            item = decoded(line)
            if isinstance(item, dict):
                self._add(item, position, record)
            else:
                problem = f"It is not a JSON object: {brief(line)}. Such lines are skipped."
                self.report_once(record, "object", f"line {position}", problem)

    def _add(self, item: Mapping[str, Any], position: int, record: SourceRecord) -> None:
        fields = row_fields(item)
        metric = _metric(item)
        if metric is not None:
            fields = ((metric if name == "value" else name, value) for name, value in fields)
        row = self.rows.sorted_fields(fields)
        counts = counts_of(row.counters)
        if isinstance(counts, str):
            self.report_once(record, "step", f"line {position}", counts)
            return
        if metric is not None:
            self._streams.choose(metric, record)
        self.rows.add(row.values, counts, record, row.prefix, row.time)


def _metric(item: Mapping[str, Any]) -> str | None:
    """Return the name of the metric that the line has the value of; None if it has several."""
    name = item.get("name")
    return name if isinstance(name, str) and to_number(item.get("value")) is not None else None


def _reason(folder: SourceFolder, name: str) -> str | Unreadable:
    plain = plain_name(name).lower()
    is_summary = plain.endswith(".json")
    if not plain.endswith(_SURE) and (plain == _STATE or not _LOGS.fullmatch(plain)):
        return ""
    if name == _FINDINGS and not _OWN.isdisjoint(folder.names):
        return ""
    items = json_head(folder.head_text(name))
    steps = [step for step in map(_step_name, items) if step]
    # A single object in a .json file is the summary of something.
    if len(steps) > is_summary:
        return f"its lines are JSON objects with {steps[0]!r}"
    if sum(map(_has_two_sets, items)) > 1:
        return "its lines are JSON objects with losses of a training and an evaluation"
    if items and plain.endswith(_SURE):
        reason = "its objects have no step beside their numbers: they may be samples of a data set"
        return Unreadable(folder.key + name, reason)
    return ""


def json_head(head: str) -> list[Mapping[str, Any]]:
    """Return the objects at the start of a file of JSON lines; none if it is something else.

    A text log may contain JSON lines, but does not begin with one.
    """
    lines = [line for line in head.split("\n") if line.strip()]
    if not lines or not isinstance(decoded(lines[0]), dict):
        return []
    return [item for item in map(decoded, lines[:100]) if isinstance(item, dict)]


def _step_name(item: Mapping[str, Any]) -> str:
    """Return the name of an object's step; "" if it has none, or no other number."""
    numbers = [(name, value) for name, value in row_fields(item) if not isinstance(value, list)]
    steps = [x for x, value in numbers if is_counter(x) and first_count(x, value) is not None]
    has_metric = _metric(item) is not None or any(
        NAMES(x).collection and to_number(value) is not None for x, value in numbers
    )
    return min(steps, key=lambda x: (counter_rank(x), x), default="") if has_metric else ""


def _has_two_sets(item: Mapping[str, Any]) -> bool:
    """Return whether an object has losses of both sets, and no text, such as what was compared."""
    fields = [*row_fields(item)]
    losses = (NAMES(name) for name, value in fields if to_number(value) is not None)
    modes = {x.mode for x in losses if x.collection == "losses" and x.says_mode}
    return len(modes) > 1 and not any(isinstance(value, str) for _, value in fields)


def decoded(line: str) -> Any:
    """Return the value of a line, with ``NaN`` and ``Infinity``; None if it is not JSON."""
    for decode in (_decoder.decode, json.loads):
        try:
            return decode(line)
        except (ValueError, RecursionError):
            continue
    return None


def row_fields(item: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of an object that is a row: without settings, and each by its own name.

    >>> list(row_fields({"iter/max": "5/300", "data": {"loss": 0.5}, "config": {"lr": 1}}))
    [('iter', '5/300'), ('loss', 0.5)]
    """
    if not SETTINGS.isdisjoint(item):
        item = {key: value for key, value in item.items() if key not in SETTINGS}
    for name, value in flattened(item):
        outer, slash, inner = name.partition("/")
        is_fraction = slash and isinstance(value, str) and is_counter(outer)
        is_wrapped = slash and outer in _WRAPPERS
        yield (inner if is_wrapped else outer if is_fraction else name), value


def flattened(
    item: Mapping[str, Any], prefix: str = "", depth: int = 1
) -> Iterator[tuple[str, Any]]:
    """Yield the fields of nested objects, their names joined by slashes.

    >>> list(flattened({"step": 1, "train": {"loss": 0.5}}))
    [('step', 1), ('train/loss', 0.5)]
    >>> list(flattened({"metrics": [{"name": "loss", "value": 0.5}]}))
    [('loss', 0.5)]
    """
    for key, value in item.items():
        name = prefix + key
        if type(value) is list and value and all(map(_is_named, value)):
            yield from flattened({field["name"]: field["value"] for field in value}, prefix, depth)
            continue
        if type(value) is not dict:
            if len(name) <= MAX_NAME:
                yield name, value
        elif value.keys() == _STATISTICS:
            yield name, value["mean"]
        elif depth < MAX_DEPTH and "_type" not in value:  # such as an image of wandb
            yield from flattened(value, f"{name}/", depth + 1)


def _is_named(item: object) -> bool:
    return isinstance(item, dict) and item.keys() >= _NAMED and isinstance(item["name"], str)


FORMAT: Final = LineFormat("jsonl", _reason, JsonLinesSource)
