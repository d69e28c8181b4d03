"""Time units and file names of the profiler, under the names of smdebug."""

import re
from datetime import UTC, datetime
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, Final

from rule_core.storage.base import TrialStore
from rule_core.storage.local import LocalStore
from rule_core.storage.uri import is_s3, open_store

# Seconds since the epoch and a node: algo-<n> on SageMaker, any name elsewhere.
SYSTEM_NAME: Final = r"system/.+/(\d{10})\.([^/.][^/]*)\.json"
_SYSTEM_NAME: Final = re.compile(f".+/{SYSTEM_NAME}")
_ALGO_NODE: Final = re.compile(r"(.*)-(algo.*)", re.DOTALL)
_TF_SUFFIX: Final = "trace.json.gz"
_METADATA_NAME: Final = re.compile(r"(.+)_(\d{1,18})_(\d{1,18})\.metadata")
_TRUE: Final = frozenset({"y", "yes", "t", "true", "on", "1"})
_FALSE: Final = frozenset({"n", "no", "f", "false", "off", "0"})
_FOLDERS_ABOVE_TRACE: Final = 4  # the folder of the step: plugins/profile/<date>/<file>


class TimeUnits(Enum):
    """The unit of a timestamp."""

    SECONDS = 1
    MILLISECONDS = 2
    MICROSECONDS = 3
    NANOSECONDS = 4


# -- units ------------------------------------------------------------------------------------


def _converted(timestamp: float, unit: TimeUnits, target: TimeUnits) -> float:
    """Convert a time to a whole number, rounded down; nanoseconds keep their fraction."""
    for _ in range(unit.value, target.value):
        timestamp *= 1000
    for _ in range(target.value, unit.value):
        timestamp /= 1000
    return timestamp if unit is TimeUnits.NANOSECONDS else int(timestamp)


def convert_utc_timestamp_to_nanoseconds(
    timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS
) -> float:
    """Convert a time to whole nanoseconds, rounded down; nanoseconds are unchanged.

    >>> convert_utc_timestamp_to_nanoseconds(1.5, TimeUnits.SECONDS)
    1500000000
    """
    return _converted(timestamp, unit, TimeUnits.NANOSECONDS)


def convert_utc_timestamp_to_microseconds(
    timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS
) -> float:
    """Convert a time to whole microseconds, rounded down; nanoseconds keep their fraction.

    >>> convert_utc_timestamp_to_microseconds(1.5, TimeUnits.SECONDS)
    1500000
    """
    return _converted(timestamp, unit, TimeUnits.MICROSECONDS)


def convert_utc_timestamp_to_seconds(
    timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS
) -> float:
    """Convert a time to whole seconds, rounded down; nanoseconds keep their fraction.

    >>> convert_utc_timestamp_to_seconds(2_500_000)
    2
    """
    return _converted(timestamp, unit, TimeUnits.SECONDS)


def convert_utc_datetime_to_nanoseconds(timestamp_datetime: datetime) -> float:
    """Return nanoseconds since the epoch; a time without a zone is in the local zone."""
    return convert_utc_timestamp_to_nanoseconds(timestamp_datetime.timestamp(), TimeUnits.SECONDS)


def convert_utc_datetime_to_microseconds(timestamp_datetime: datetime) -> float:
    """Return microseconds since the epoch; see `convert_utc_datetime_to_nanoseconds`."""
    return convert_utc_timestamp_to_microseconds(timestamp_datetime.timestamp(), TimeUnits.SECONDS)


def us_since_epoch_to_human_readable_time(us_since_epoch: float) -> str:
    """Format a time in UTC, with a colon before the microseconds as in smdebug.

    >>> us_since_epoch_to_human_readable_time(1591160699457089)
    '2020-06-03T05:04:59:457089'
    """
    return datetime.fromtimestamp(us_since_epoch / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S:%f")


def ns_since_epoch_to_human_readable_time(ns_since_epoch: float) -> str:
    """Format a time in UTC; see `us_since_epoch_to_human_readable_time`."""
    return datetime.fromtimestamp(ns_since_epoch / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S:%f")


def str2bool(v: Any) -> bool:
    """Parse a boolean.

    Raises
    ------
    ValueError
        If the string is not a boolean.

    >>> str2bool("True"), str2bool("off"), str2bool(True)
    (True, False, True)
    """
    if isinstance(v, bool):
        return v
    text = str(v).strip().lower()
    if text not in _TRUE | _FALSE:
        raise ValueError(f"A boolean must be true or false, got {v!r}.")
    return text in _TRUE


# -- names of system metrics' files -----------------------------------------------------------


def validate_system_profiler_file(filename: str) -> bool:
    """Return whether a path is a file of system metrics.

    >>> validate_system_profiler_file("/p/system/incremental/2020060500/1591160699.algo-1.json")
    True
    """
    return _SYSTEM_NAME.fullmatch(filename) is not None


def get_node_id_from_system_profiler_filename(filename: str) -> str | None:
    """Return the node of a file of system metrics; None for other files.

    >>> get_node_id_from_system_profiler_filename("/p/system/incremental/1591160699.algo-1.json")
    'algo-1'
    """
    match = _SYSTEM_NAME.fullmatch(filename)
    return None if match is None else match[2]


def get_utctimestamp_us_since_epoch_from_system_profiler_file(filename: str) -> int | None:
    """Return the start of a file of system metrics in microseconds; None for other files.

    >>> name = "/p/system/incremental/1591160699.algo-1.json"
    >>> get_utctimestamp_us_since_epoch_from_system_profiler_file(name)
    1591160699000000
    """
    match = _SYSTEM_NAME.fullmatch(filename)
    return None if match is None else int(match[1]) * 1_000_000


# -- names of timelines -----------------------------------------------------------------------


def is_valid_tracefilename(filename: str) -> bool:
    """Return whether a path is a timeline: below ``pevents``, with at least two ``_``.

    >>> is_valid_tracefilename("/p/framework/pevents/20200702/15930_11-algo-1_model_timeline.json")
    True
    """
    return filename.endswith(".json") and "pevents" in filename and filename.count("_") > 1


def is_valid_tfprof_tracefilename(filename: str) -> bool:
    """Return whether a path is a detailed profile of TensorFlow."""
    return filename.endswith(_TF_SUFFIX) and "tensorflow/detailed_profiling" in filename


def node_id_of(key: str) -> str:
    """Return the node in the name of a timeline; for a TensorFlow profile, its host.

    >>> node_id_of("pevents/2020051923/1589930988000000_4487_0000_pythontimeline.json")
    '4487'
    """
    name = key.rpartition("/")[2]
    if name.endswith(_TF_SUFFIX):
        return name.partition(".")[0]
    return f"{name}_".split("_")[1]


def ordered_node_id(node_id: str) -> str:
    """Return the `node_id` of an event: SageMaker's start with the host, to sort by host.

    >>> ordered_node_id("11-algo-1"), ordered_node_id("905-b88ab1bb8259")
    ('algo-1-11', '905-b88ab1bb8259')
    """
    match = _ALGO_NODE.match(node_id)
    return node_id if match is None else f"{match[2]}-{match[1]}"


def is_on_host(node_id: str, host: str) -> bool:
    """Return whether the node of an event is a process on a host of system metrics.

    >>> is_on_host("algo-1-11", "algo-1"), is_on_host("11-gpu-1", "gpu-1"), is_on_host("11", "1")
    (True, True, False)
    """
    return node_id == host or node_id.startswith(f"{host}-") or node_id.endswith(f"-{host}")


def get_node_id_from_tracefilename(filename: str) -> str:
    """Return the `node_id` of the events in a file; "" if its name contains none.

    >>> get_node_id_from_tracefilename("/p/pevents/20200702/15930_11-algo-1_model_timeline.json")
    'algo-1-11'
    """
    return ordered_node_id(node_id_of(filename))


def get_timestamp_from_tracefilename(filename: str) -> int:
    """Return the end of a timeline's last event in microseconds; 0 if not in its name.

    >>> get_timestamp_from_tracefilename("/p/pevents/20200702/15930_11-algo-1_model_timeline.json")
    15930
    """
    if is_valid_tracefilename(filename):
        stamp = PurePosixPath(filename).name.split("_")[0]
        return int(stamp) if stamp.isdecimal() else 0
    return int(read_tf_profiler_metadata_file(filename)[2])


def parse_metadata_name(name: str) -> tuple[str, int, int] | None:
    """Return node, start and end (microseconds) from the name of a ``.metadata`` file.

    >>> parse_metadata_name("11-algo-1_1600000000000000_1600000001000000.metadata")
    ('11-algo-1', 1600000000000000, 1600000001000000)
    """
    match = _METADATA_NAME.fullmatch(name.rpartition("/")[2])
    return None if match is None else (match[1], int(match[2]), int(match[3]))


def tf_metadata(store: TrialStore, key: str) -> tuple[str, int, int] | None:
    """Return node, start and end (microseconds) of a detailed profile of TensorFlow.

    They are in the name of a ``.metadata`` file below the folder four levels above the profile. If
    several nodes wrote one, that of the profile's host is used, otherwise the first.

    Parameters
    ----------
    store, key
        Location of the profile.

    Returns
    -------
    tuple or None
        None if there is no such file.
    """
    parts = key.split("/")
    folder = "".join(f"{part}/" for part in parts[:-_FOLDERS_ABOVE_TRACE])
    names = (name for name in store.list_keys(folder) if name.endswith(".metadata"))
    entries = [entry for name in names if (entry := parse_metadata_name(name)) is not None]
    host = parts[-1].removesuffix(f".{_TF_SUFFIX}")
    return min(entries, key=lambda entry: not entry[0].endswith(host), default=None)


def read_tf_profiler_metadata_file(file_path: str) -> tuple[str, str, str]:
    """Return node, start and end (microseconds, as strings) of a detailed profile of TensorFlow.

    Parameters
    ----------
    file_path
        Its full path or S3 address.

    Returns
    -------
    tuple
        ``("", "0", "0")`` if it is not a profile, or has no ``.metadata`` file.
    """
    if not is_valid_tfprof_tracefilename(file_path):
        return "", "0", "0"
    root, _, key = file_path.rpartition("tensorflow/detailed_profiling/")
    store = open_store(root) if is_s3(file_path) else LocalStore(root or ".")
    entry = tf_metadata(store, f"tensorflow/detailed_profiling/{key}")
    return ("", "0", "0") if entry is None else (entry[0], str(entry[1]), str(entry[2]))
