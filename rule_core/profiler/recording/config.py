"""RecordingConfig: what to profile, from the file that a training job gets."""

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from rule_core.exceptions import SMDebugError, SMDebugTypeError, SMDebugValueError
from rule_core.profiler.files import constants
from rule_core.profiler.files.time_units import str2bool
from rule_core.profiler.python_profiles.types import cProfileTimer
from rule_core.profiler.recording.ranges import ProfilingRange

INTERVAL_MS: Final = 500
_LARGEST_FILE: Final = 1 << 20  # bytes of a configuration
_SDK_ITEM: Final = re.compile(r'(?:^\{|, )\s*"(\w+)": ')
_SDK_END: Final = re.compile(r",\s*\}\s*$")
# Steps that the SDK's classes profile by default: the first, and how many.
_DEFAULT_STEPS: Final = {
    "detailedprofilingconfig": (5, 1),
    "dataloaderprofilingconfig": (7, 1),
    "pythonprofilingconfig": (9, 3),
    "horovodprofilingconfig": (13, 1),
    "smdataparallelprofilingconfig": (15, 1),
}
_STEPS: Final = frozenset({"startstep", "numsteps"})
_IGNORED: Final = "Profiler setting {!r} is {!r:.100}: {} Ignored."
_NOT_PROFILED: Final = "{} is {!r:.200}: {} These metrics are not profiled."
_TIMES: Final = frozenset({"starttimeinsecsinceepoch", "duration", "durationinseconds"})

Json = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class FileLimits:
    """When a timeline is closed, and when profiling gives up.

    Attributes
    ----------
    max_bytes
        Size at which a file is closed.
    max_age_s
        Age in seconds at which a file is closed.
    open_failures
        Number of files that could not be opened after which nothing more is written.
    """

    max_bytes: int = constants.MAX_FILE_SIZE_DEFAULT
    max_age_s: float = constants.CLOSE_FILE_INTERVAL_DEFAULT
    open_failures: int = constants.FILE_OPEN_FAIL_THRESHOLD_DEFAULT


@dataclass(frozen=True, slots=True)
class DataLoaderMetrics:
    """The events of data loaders to record.

    Attributes
    ----------
    range
        When.
    pattern
        Matches the beginnings of their names, in any case.
    """

    range: ProfilingRange
    pattern: re.Pattern[str]


@dataclass(frozen=True, slots=True)
class PythonProfiling:
    """How Python functions are profiled.

    Attributes
    ----------
    range
        When.
    profiler
        ``cprofile`` or ``pyinstrument``.
    timer
        The timer of cProfile.
    """

    range: ProfilingRange
    profiler: str
    timer: cProfileTimer


@dataclass(frozen=True, slots=True)
class RecordingConfig:
    """What to profile; None stands for nothing.

    Attributes
    ----------
    is_disabled
        Whether nothing at all is profiled.
    folder
        Folder or S3 address of the files.
    interval_ms
        Pause between two samples of the system, in milliseconds.
    limits
        Limits of timelines.
    framework
        Whether timelines are written.
    detailed, horovod, smdataparallel
        When to record operators, and the activity of these libraries.
    data_loader, python
        What to record of data loaders and Python functions, and when.
    is_kineto_inside
        Whether traces of operators lie inside of the framework's folder, not beside it.
    problems
        A sentence for each setting that cannot be used.
    """

    is_disabled: bool = False
    folder: str = constants.BASE_FOLDER_DEFAULT
    interval_ms: int = INTERVAL_MS
    limits: FileLimits = field(default_factory=FileLimits)
    framework: bool = False
    detailed: ProfilingRange | None = None
    horovod: ProfilingRange | None = None
    smdataparallel: ProfilingRange | None = None
    data_loader: DataLoaderMetrics | None = None
    python: PythonProfiling | None = None
    is_kineto_inside: bool = False
    problems: tuple[str, ...] = ()

    @property
    def profiles_steps(self) -> bool:
        """Whether profilers follow the steps, and not only timelines are written."""
        kinds = (self.detailed, self.horovod, self.smdataparallel, self.python)
        return self.framework and any(kind is not None for kind in kinds)


def read_config(path: Path) -> RecordingConfig:
    """Return the configuration in a file; one that is disabled if there is no file.

    Raises
    ------
    SMDebugValueError
        If the file holds no JSON object.
    OSError
        If it cannot be read.
    """
    try:
        if path.stat().st_size > _LARGEST_FILE:
            raise SMDebugValueError(
                f"Profiler configuration {str(path)!r} has more than {_LARGEST_FILE} bytes."
            )
        text = path.read_bytes()
    except FileNotFoundError:
        return RecordingConfig(is_disabled=True)
    try:
        document = msgspec.json.decode(text or b"{}", type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as err:
        raise SMDebugValueError(
            f"Profiler configuration {str(path)!r} is no JSON object: {err}."
        ) from err
    return parse_config(document)


def parse_config(document: Json) -> RecordingConfig:
    """Return the configuration in the `ProfilerConfig` of a training job.

    Parameters
    ----------
    document
        The decoded JSON; keys may have any case.

    Returns
    -------
    RecordingConfig
        An invalid setting has its default, and a sentence
        in `problems`; a kind of metrics with one is not profiled.
    """
    problems: list[str] = []
    settings = _SettingsSection(_folded(document), problems)
    is_disabled = settings.read("disableprofiler", str2bool, default=False)
    parameters = _SettingsSection(settings.read("profilingparameters", _section, {}), problems)
    if is_disabled or not parameters.read("profilerenabled", str2bool, default=True):
        return RecordingConfig(is_disabled=True, problems=tuple(problems))
    usual = FileLimits()
    limits = FileLimits(
        parameters.read("rotatemaxfilesizeinbytes", _positive_integer, usual.max_bytes),
        parameters.read("rotatefilecloseintervalinseconds", _positive_number, usual.max_age_s),
        parameters.read("fileopenfailthreshold", _positive_integer, usual.open_failures),
    )
    return RecordingConfig(
        folder=parameters.read("localpath", _text, constants.BASE_FOLDER_DEFAULT),
        interval_ms=settings.read(
            "profilingintervalinmilliseconds", _positive_integer, INTERVAL_MS
        ),
        limits=limits,
        framework=settings.has("profilingparameters"),
        detailed=parameters.metrics("DetailedProfilingConfig", _range),
        horovod=parameters.metrics("HorovodProfilingConfig", _range),
        smdataparallel=parameters.metrics("SMDataParallelProfilingConfig", _range),
        data_loader=parameters.metrics("DataloaderProfilingConfig", _data_loader),
        python=parameters.metrics("PythonProfilingConfig", _python),
        is_kineto_inside=parameters.read("kinetoinside", str2bool, default=False),
        problems=tuple(problems),
    )


def config_of(value: Any) -> RecordingConfig:
    """Return the configuration that a script passes to a hook.

    Parameters
    ----------
    value
        A `ProfilerConfig` of this package or of an SDK, or its request as a mapping.

    Raises
    ------
    SMDebugTypeError
        If it is neither.
    """
    make_request = getattr(value, "_to_request_dict", None)
    document = make_request() if callable(make_request) else value
    if not isinstance(document, Mapping):
        raise SMDebugTypeError(
            f"Argument 'profiler_config' must be a ProfilerConfig or a mapping, got {value!r}."
        )
    return parse_config(document)


class _SettingsSection:
    """The settings of a section, by name in lower case, and a sentence for each invalid one."""

    def __init__(self, values: Json, problems: list[str]) -> None:
        self._values = values
        self._problems = problems

    def has(self, name: str) -> bool:
        """Return whether a setting is given."""
        return self._values.get(name.lower()) is not None

    def read(self, name: str, parse: Callable[[Any], T], default: T, problem: str = _IGNORED) -> T:
        """Return a setting, or its default if it is missing or invalid."""
        if not self.has(name):
            return default
        value = self._values[name.lower()]
        try:
            return parse(value)
        except (ValueError, OverflowError, SMDebugError) as err:
            self._problems.append(problem.format(name, value, err))
            return default

    def metrics(self, name: str, parse: Callable[[Json, str], T]) -> T | None:
        """Return the configuration of a kind of metrics; None if it is missing or invalid."""

        def parse_section(value: object) -> T | None:
            return parse(_section(value), name.lower())

        return self.read(name, parse_section, None, _NOT_PROFILED)


def _folded(document: Json) -> dict[str, Any]:
    return {str(key).lower(): value for key, value in document.items()}


def _section(value: object) -> dict[str, Any]:
    """Return an object, given as such, as JSON, as the SDK writes it, or as Python prints it.

    The SDK writes a comma before the closing brace and does not escape patterns. smdebug also takes
    quotes of Python.
    """
    if isinstance(value, str):
        text = value.strip()
        if _SDK_END.search(text):
            return dict(_sdk_items(_SDK_END.sub("", text)))
        try:
            value = msgspec.json.decode(text)
        except (msgspec.MsgspecError, RecursionError):
            value = _python_literal(text)
    if not isinstance(value, dict):
        raise SMDebugValueError("it must be an object.")
    return _folded(value)


def _python_literal(text: str) -> object:
    """Return the value of a literal of Python; None for other texts."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def _sdk_items(text: str) -> Iterator[tuple[str, str]]:
    """Yield the keys and values of an object that the SDK has written, without its last comma."""
    matches = list(_SDK_ITEM.finditer(text))
    ends = [match.start() for match in matches[1:]] + [len(text)]
    for match, end in zip(matches, ends, strict=True):
        value = text[match.end() : end].strip()
        is_quoted = value[:1] == value[-1:] == '"' and len(value) > 1
        yield match[1].lower(), value[1:-1] if is_quoted else value


def _range(section: Json, kind: str) -> ProfilingRange:
    if str2bool(section.get("defaultprofiling") or False):
        return ProfilingRange(*_DEFAULT_STEPS[kind])
    given_keys = {key for key, value in section.items() if value not in (None, "None", "null")}
    if given_keys & _TIMES and section.get("startstep") in (0, "0"):  # as `TimeRange` writes it
        given_keys.remove("startstep")
    if given_keys & _STEPS and given_keys & _TIMES:
        raise SMDebugValueError("it has a range of steps and one of time; leave out one.")
    values = {key: section[key] for key in given_keys}
    duration = values.get("durationinseconds", values.get("duration"))
    start_s = values.get("starttimeinsecsinceepoch")
    return ProfilingRange(
        None if "startstep" not in values else _step(values["startstep"]),
        None if "numsteps" not in values else _positive_integer(values["numsteps"]),
        None if start_s is None else _positive_number(start_s),
        None if duration is None else _positive_number(duration),
    )


def _data_loader(section: Json, kind: str) -> DataLoaderMetrics:
    pattern = section.get("metricsregex")
    try:
        compiled = re.compile(".*" if pattern is None else _text(pattern), re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as err:
        raise SMDebugValueError(f"its pattern is invalid, {err}.") from None
    return DataLoaderMetrics(_range(section, kind), compiled)


def _python(section: Json, kind: str) -> PythonProfiling:
    profiler = _text(section.get("profilername") or constants.CPROFILE_NAME).lower()
    if profiler not in {constants.CPROFILE_NAME, constants.PYINSTRUMENT_NAME}:
        raise SMDebugValueError(
            f"its profiler must be {constants.CPROFILE_NAME} or {constants.PYINSTRUMENT_NAME}."
        )
    timer = cProfileTimer(_text(section.get("cprofiletimer") or "total_time").lower())
    return PythonProfiling(_range(section, kind), profiler, timer)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise SMDebugValueError("it must be a text.")
    return value.strip()


def _step(value: object) -> int:
    return _integer(value, 0, "a step must not be negative.")


def _positive_integer(value: object) -> int:
    return _integer(value, 1, "it must be at least 1.")


def _integer(value: object, least: int, requirement: str) -> int:
    number = _number(value)
    if number != int(number):
        raise SMDebugValueError("it must be a whole number.")
    if number < least:
        raise SMDebugValueError(requirement)
    return int(number)


def _positive_number(value: object) -> float:
    number = _number(value)
    if not 0 < number < float("inf"):
        raise SMDebugValueError("it must be a positive number.")
    return number


def _number(value: object) -> float:
    with suppress(ValueError):
        if isinstance(value, int | float | str) and not isinstance(value, bool):
            return float(value)
    raise SMDebugValueError("it must be a number.")
