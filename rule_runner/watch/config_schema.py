"""The JSON schema of ``fleet.yaml``, for editors: made from the structs that read it."""

import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from rule_core.sources.options import LogPattern, NameRule, SourceOptions
from rule_runner.results.json_text import dump_json
from rule_runner.watch.config import AlertsConfig, Assignment, WatchConfig

_HEADER: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": "urn:rule-runner:fleet:1",
    "title": "Configuration of rule-runner watch (fleet.yaml)",
}
_STRUCTS: Final = (WatchConfig, Assignment, AlertsConfig, SourceOptions, NameRule, LogPattern)
# Fields whose default depends on the machine.
_OF_MACHINE: Final = ("max_concurrent",)
_ONE_OF: Final = [
    {"required": ["rules"]},
    {"required": ["job"]},
    {"required": ["ignore"], "properties": {"ignore": {"const": True}}},
]
_NAMES: Final = re.compile(r"\w+(, \w+)*")


def config_schema() -> str:
    """Return the JSON schema as text."""
    schema: dict[str, Any] = msgspec.json.schema(WatchConfig)
    definitions = schema["$defs"]
    for struct in _STRUCTS:
        definition = definitions[struct.__name__]
        definition["description"] = _summary(struct)
        for name, text in _descriptions(struct):
            definition["properties"][name]["description"] = text
    definitions[Assignment.__name__]["oneOf"] = _ONE_OF
    top = definitions.pop(WatchConfig.__name__)
    for name in _OF_MACHINE:
        del top["properties"][name]["default"]
    return dump_json({**_HEADER, **top, **_HEADER, "$defs": definitions}, indent=2) + "\n"


def _summary(struct: type[msgspec.Struct]) -> str:
    return (inspect.getdoc(struct) or "").partition("\n")[0]


def _descriptions(struct: type[msgspec.Struct]) -> Iterator[tuple[str, str]]:
    """Yield the name and the meaning of each attribute in the docstring of a struct."""
    section = (inspect.getdoc(struct) or "").partition("Attributes\n----------\n")[2]
    for block in re.split(r"\n(?=\w)", section):
        names, _, text = block.partition("\n")
        if _NAMES.fullmatch(names):
            for name in names.split(", "):
                yield name, " ".join(text.split()).replace("``", "")
