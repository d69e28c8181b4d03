"""RecordingOptions: what a recording is told, and the configuration that this makes."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from rule_core.profiler.recording.config import parse_config
from rule_runner.config.documents import read_text
from rule_runner.config.job_file.python_file import SUFFIX, run_file
from rule_runner.errors import ClientError, UsageError, restated, translated

LEAST_INTERVAL_MS: Final = 10
_INTERVAL: Final = re.compile(r"(\d{1,9})(ms|s)")
_PARAMETERS: Final = "ProfilingParameters"
_KINDS: Final = (
    ("operators", "DetailedProfilingConfig"),
    ("data_loaders", "DataloaderProfilingConfig"),
    ("python", "PythonProfilingConfig"),
)
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RecordingOptions:
    """What to record.

    Attributes
    ----------
    file
        A `ProfilerConfig` as JSON, or a Python file that defines one; None: system metrics and the
        timeline of steps.
    interval
        Pause between two samples of the system, such as ``500ms``.
    operators, data_loaders, python
        Steps whose operators, data loaders and Python functions are profiled, ``9`` or ``9:12``,
        instead of those of the file.
    prefix
        Beginning of the names of the options, for messages.
    """

    file: Path | None = None
    interval: str | None = None
    operators: str | None = None
    data_loaders: str | None = None
    python: str | None = None
    prefix: str = "--"

    def document(self, folder: str) -> Json:
        """Return the `ProfilerConfig` of a recording into a folder.

        Options take precedence over the file, and steps are always timed unless the file disables
        profiling.

        Raises
        ------
        ClientError
            If the file cannot be used, or a setting in it.
        UsageError
            If an option is wrong.
        """
        document = {} if self.file is None else _read(self.file)
        if self.interval is not None:
            option = f"{self.prefix}interval"
            _set(document, "ProfilingIntervalInMilliseconds", _interval_ms(self.interval, option))
        parameters = _set(document, _PARAMETERS, _parameters_in(document))
        _set(parameters, "LocalPath", folder)
        for kind, steps in self._ranges():
            _set(parameters, kind, steps)
        problems = parse_config(document).problems
        if problems:
            raise ClientError(" ".join(problems))
        return document

    def _ranges(self) -> Iterator[tuple[str, Json]]:
        """Yield the kinds of metrics whose steps are given, with the range in a configuration."""
        for name, kind in _KINDS:
            text = getattr(self, name)
            if text is None:
                continue
            option = f"{self.prefix}{name.replace('_', '-')}"
            start, end = step_range(text, option)
            if end <= start:
                raise UsageError(f"Option {option} must contain a step, got {text!r}.")
            yield kind, {"StartStep": start, "NumSteps": end - start}


def _read(file: Path) -> Json:
    """Return the request of a configuration file."""
    if file.suffix == SUFFIX:
        return _defined_in(file)
    problem = f"Profiler configuration {str(file)!r} is no JSON object: "
    with translated(ClientError, msgspec.MsgspecError, RecursionError, before=problem, after="."):
        return msgspec.json.decode(read_text(file, "Profiler configuration") or "{}", type=Json)


def _defined_in(file: Path) -> Json:
    """Return the request of the only `ProfilerConfig`, of any SDK, that a Python file defines."""
    configs = {
        id(value): (name, value)
        for name, value in run_file(file).items()
        if type(value).__name__ == "ProfilerConfig" and hasattr(value, "_to_request_dict")
    }
    if len(configs) != 1:
        names = ", ".join(name for name, _ in configs.values())
        defines = f"several ProfilerConfigs: {names}" if configs else "no ProfilerConfig"
        raise ClientError(
            f"Python file {str(file)!r} defines {defines}. Define one, at the top level."
        )
    ((_, config),) = configs.values()
    request: Json = json.loads(json.dumps(config._to_request_dict()))  # noqa: SLF001 - the SDK's own protocol
    return request


def _set(section: Json, key: str, value: Any) -> Any:
    """Set a key that may be there in another case; return the value."""
    for other in [other for other in section if str(other).lower() == key.lower()]:
        del section[other]
    section[key] = value
    return value


def _parameters_in(document: Json) -> Json:
    """Return the parameters of framework profiling; empty without any."""
    values = [value for key, value in document.items() if key.lower() == _PARAMETERS.lower()]
    parameters = values[-1] if values else None
    if not isinstance(parameters, dict | None):
        raise ClientError(f"{_PARAMETERS} must be an object, got {parameters!r:.100}.")
    return dict(parameters or {})


def _interval_ms(text: str, option: str) -> int:
    """Return the milliseconds of ``500ms`` or ``2s``."""
    match = _INTERVAL.fullmatch(text.strip())
    milliseconds = 0 if match is None else int(match[1]) * (1000 if match[2] == "s" else 1)
    if milliseconds < LEAST_INTERVAL_MS:
        raise UsageError(
            f"Option {option} must be a time such as 500ms or 2s, and at least "
            f"{LEAST_INTERVAL_MS}ms, got {text!r}."
        )
    return milliseconds


def step_range(text: str, option: str) -> tuple[int, int]:
    """Return the first step of ``9:12`` or ``9``, and the step after the last.

    Raises
    ------
    UsageError
        If an option is neither.
    """
    first, colon, last = text.partition(":")
    problem = f"Option {option} must be a step, or FIRST:LAST without the last, got {text!r}."
    with restated(UsageError, ValueError, sentence=problem):
        start = parse_step(first)
        return start, parse_step(last) if colon else start + 1


def parse_step(text: str) -> int:
    """Return a step; raise `ValueError` if it is none."""
    step = int(text)
    if step < 0:
        raise ValueError
    return step
