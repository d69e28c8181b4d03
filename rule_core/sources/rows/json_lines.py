"""Reader of JSON lines: one object a line, with a step and numbers."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from rule_core.reading.source_record import SourceRecord
from rule_core.sources.format import SourceFolder
from rule_core.sources.rows.line_source import LineFormat, LineSource
from rule_core.sources.rows.row_fields import (
    MODE,
    TIME,
    brief,
    field_role,
    mode_prefix,
    to_number,
    to_time,
)

MAX_DEPTH: Final = 16  # of nested objects
MAX_NAME: Final = 1000  # characters
_STATE: Final = "trainer_state.json"
_SURE: Final = (".jsonl", ".ndjson")
_LOGS: Final = re.compile(r"(?i).*\.(log|out|txt)|.*(hist|log|metric|scalar|train)[^/]*\.json")
# Findings of rule-runner, which have steps too, are beside one of these; the second is old.
_OWN: Final = frozenset({"results.json", "rule_result.json"})
_FINDINGS: Final = "findings.jsonl"
_decoder: Final = msgspec.json.Decoder()


class JsonLinesSource(LineSource):
    """Reads one file of JSON lines. See ``docs/sources/jsonl.md`` for what it accepts."""

    def add_lines(self, lines: Iterator[str], first: int, record: SourceRecord) -> None:
        """Pass the objects on; see `LineSource`."""
        is_new = self.delivered.is_new
        for number, line in enumerate(lines, first):
            if not line or line.isspace() or not is_new(line):
                continue
            item = decoded(line)
            if isinstance(item, dict):
                self._add(item, number, record)
            else:
                text = f"It is not a JSON object: {brief(line)}. Such lines are skipped."
                self.report_once(record, "object", f"line {number}", text)

    def _add(self, item: Mapping[str, Any], number: int, record: SourceRecord) -> None:
        values: dict[str, float] = {}
        fields: dict[int, Any] = {}
        time, prefix = 0.0, ""
        for name, value in flattened(item):
            role = field_role(name)
            if role is None:
                value_number = value if type(value) is float else to_number(value)
                if value_number is not None:
                    values[name] = value_number
            elif role == TIME:
                time = to_time(value)
            elif role == MODE:
                prefix = mode_prefix(value)
            elif value is not None and isinstance(role, int):
                fields.setdefault(role, value)
        if not values:
            return
        step = self.step_of(fields, number, record)
        if step is None:
            return
        if prefix:
            values = {prefix + name: value for name, value in values.items()}
        record.row(step, values, time)


def _reason(folder: SourceFolder, name: str) -> str:
    is_summary = name.lower().endswith(".json")
    if not name.lower().endswith(_SURE) and (name == _STATE or not _LOGS.fullmatch(name)):
        return ""
    if name == _FINDINGS and not _OWN.isdisjoint(folder.names):
        return ""
    steps = [step for step in map(_step_name, json_head(folder.head_text(name))) if step]
    # A single object in a .json file is the summary of something.
    return f"its lines are JSON objects with {steps[0]!r}" if len(steps) > is_summary else ""


def json_head(text: str) -> list[Mapping[str, Any]]:
    """Return the objects at the start of a file of JSON lines; none if it is something else.

    A text log may contain JSON lines, but does not begin with one.
    """
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines or not isinstance(decoded(lines[0]), dict):
        return []
    return [item for item in map(decoded, lines[:100]) if isinstance(item, dict)]


def _step_name(item: Mapping[str, Any]) -> str:
    """Return the name of an object's step; "" if it has none, or no other number."""
    roles = [
        (field_role(name), name) for name, value in flattened(item) if to_number(value) is not None
    ]
    steps = [(role, name) for role, name in roles if isinstance(role, int)]
    return min(steps)[1] if steps and any(role is None for role, _ in roles) else ""


def decoded(line: str) -> Any:
    """Return the value of a line, with ``NaN`` and ``Infinity``; None if it is not JSON."""
    for decode in (_decoder.decode, json.loads):
        try:
            return decode(line)
        except (ValueError, RecursionError):
            continue
    return None


def flattened(
    item: Mapping[str, Any], prefix: str = "", depth: int = 1
) -> Iterator[tuple[str, Any]]:
    """Yield the fields of nested objects, their names joined by slashes.

    >>> list(flattened({"step": 1, "train": {"loss": 0.5}}))
    [('step', 1), ('train/loss', 0.5)]
    """
    for key, value in item.items():
        name = prefix + key
        if type(value) is not dict:
            if len(name) <= MAX_NAME:
                yield name, value
        elif depth < MAX_DEPTH and "_type" not in value:  # such as an image of wandb
            yield from flattened(value, f"{name}/", depth + 1)


FORMAT: Final = LineFormat("jsonl", _reason, JsonLinesSource)
