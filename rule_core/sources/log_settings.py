"""log_settings: the settings of a run in the logs of TensorBoard and of Weights & Biases."""

import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

from rule_core.exceptions import CorruptFileError, TruncatedFileError
from rule_core.format.tensor_proto import fields
from rule_core.format.tfrecord import HEADER, OVERHEAD, payload_length
from rule_core.sources.rows.json_lines import decoded
from rule_core.sources.wandb.record_log import RecordLog

Field = int | memoryview
_EVENT: Final = "event"  # what messages call it
_TEXT: Final = "/text_summary"  # ends the tag of a text
_DOUBLE: Final = struct.Struct("<d")
# Paths of fields: the values of the summaries of an event, the string of such a value, and the
# hyperparameters in the data of a plugin; items of settings in a record of W&B.
_VALUES: Final = (5, 1)
_STRING: Final = (8, 8)
_HYPERPARAMETERS: Final = (9, 1, 2, 3, 1)
_ITEMS: Final = ((17, 4, 1), (5, 1))
# In an item of W&B, and in an entry of hyperparameters.
_NESTED_KEY: Final = (2,)
_JSON: Final = (16,)
_NUMBER, _TEXT_SETTING, _TRUTH = (2, 2), (2, 3), (2, 4)


def is_log(name: str) -> bool:
    """Return whether a file with this name may be such a log."""
    return name.endswith(".wandb") or "tfevents" in name


def log_settings(name: str, content: bytes) -> Iterator[Mapping[str, Any]]:
    """Yield the settings in the first bytes of a log; what is damaged or cut off is left out."""
    with suppress(CorruptFileError, TruncatedFileError):
        if name.endswith(".wandb"):
            for record in RecordLog().records(content, lambda *_: None):
                yield dict(_item(item) for path in _ITEMS for item in _at(record, *path))
            return
        for event in _events(memoryview(content)):
            for summary in _at(event, *_VALUES):
                yield from _of_summary(summary)


def _events(content: memoryview) -> Iterator[memoryview]:
    """Yield the payloads of complete records."""
    position = 0
    while True:
        start = position + HEADER.size
        end = start + payload_length(content[position:start], _EVENT)
        if end + OVERHEAD - HEADER.size > len(content):
            return
        yield content[start:end]
        position = end + OVERHEAD - HEADER.size


def _of_summary(summary: Field) -> Iterator[Mapping[str, Any]]:
    """Yield the settings in a value of a summary: hyperparameters, and texts of JSON."""
    if any(tag.endswith(_TEXT) for tag in _strings(summary, 1)):
        for document in map(decoded, _strings(summary, *_STRING)):
            if isinstance(document, dict):
                yield document
    yield dict(_item(entry) for entry in _at(summary, *_HYPERPARAMETERS))


def _item(item: Field) -> tuple[str, Any]:
    """Return the name and the setting of an entry: JSON of W&B, or a number, text or truth."""
    name = "/".join([*_strings(item, 1)] or _strings(item, *_NESTED_KEY))
    for document in _strings(item, *_JSON):
        return name, decoded(document)
    for figure in _at(item, *_NUMBER):
        if not isinstance(figure, int) and len(figure) == _DOUBLE.size:
            return name, _DOUBLE.unpack(figure)[0]
    for truth in _at(item, *_TRUTH):
        return name, bool(truth)
    return name, next(_strings(item, *_TEXT_SETTING), None)


def _strings(message: Field, *path: int) -> Iterator[str]:
    """Yield the texts at a path of field numbers in a message."""
    for content in _at(message, *path):
        if not isinstance(content, int):
            yield str(content, "utf-8", "replace")


def _at(message: Field, *path: int) -> Iterator[Field]:
    """Yield what is at a path of field numbers in a message."""
    if not path:
        yield message
    elif not isinstance(message, int):
        for field, content in fields(memoryview(message), _EVENT):
            if field == path[0]:
                yield from _at(content, *path[1:])
