"""Times, units and file names of the profiler, under the names that rules and notebooks import."""

import re
from datetime import UTC, datetime
from enum import Enum
from pathlib import PurePosixPath
from typing import Any, Final

from smdebug.storage.local import LocalStore
from smdebug.storage.protocol import TrialStore
from smdebug.storage.uri import is_s3, open_store

_SYSTEM_NAME: Final = re.compile(r".+/system/.+/(\d{10})\.(algo-\d+)\.json")
_METADATA_NAME: Final = re.compile(r"(.+)_(\d{1,18})_(\d{1,18})\.metadata")
_TRUE: Final = frozenset({"y", "yes", "t", "true", "on", "1"})
_FALSE: Final = frozenset({"n", "no", "f", "false", "off", "0"})
_FOLDERS_ABOVE_TRACE: Final = 4  # its step's folder: plugins/profile/<date>/<file>


class TimeUnits(Enum):
    """In which unit a time stamp is given."""

    SECONDS = 1
    MILLISECONDS = 2
    MICROSECONDS = 3
    NANOSECONDS = 4


# -- units ------------------------------------------------------------------------------------


def convert_utc_timestamp_to_nanoseconds(
    timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS
) -> float:
    """Return a time in nanoseconds, cut off to whole ones; nanoseconds stay as they are.

    >>> convert_utc_timestamp_to_nanoseconds(1.5, TimeUnits.SECONDS)
    1500000000
    """
    match unit:
        case TimeUnits.SECONDS:
            return int(timestamp * 1000 * 1000 * 1000)
        case TimeUnits.MILLISECONDS:
            return int(timestamp * 1000 * 1000)
        case TimeUnits.MICROSECONDS:
            return int(timestamp * 1000)
        case TimeUnits.NANOSECONDS:
            return timestamp


def convert_utc_timestamp_to_microseconds(
    timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS
) -> float:
    """Return a time in microseconds, cut off to whole ones; of nanoseconds with a fraction.

    >>> convert_utc_timestamp_to_microseconds(1.5, TimeUnits.SECONDS)
    1500000
    """
    match unit:
        case TimeUnits.SECONDS:
            return int(timestamp * 1000 * 1000)
        case TimeUnits.MILLISECONDS:
            return int(timestamp * 1000)
        case TimeUnits.MICROSECONDS:
            return int(timestamp)
        case TimeUnits.NANOSECONDS:
            return timestamp / 1000


def convert_utc_timestamp_to_seconds(
    timestamp: float, unit: TimeUnits = TimeUnits.MICROSECONDS
) -> float:
    """Return a time in seconds, cut off to whole ones; of nanoseconds with a fraction.

    >>> convert_utc_timestamp_to_seconds(2_500_000)
    2
    """
    match unit:
        case TimeUnits.SECONDS:
            return int(timestamp)
        case TimeUnits.MILLISECONDS:
            return int(timestamp / 1000)
        case TimeUnits.MICROSECONDS:
            return int(timestamp / 1000 / 1000)
        case TimeUnits.NANOSECONDS:
            return timestamp / 1000 / 1000 / 1000


def convert_utc_datetime_to_nanoseconds(timestamp_datetime: datetime) -> float:
    """Return nanoseconds since the epoch; a time without a zone is one of this machine's zone."""
    return convert_utc_timestamp_to_nanoseconds(timestamp_datetime.timestamp(), TimeUnits.SECONDS)


def convert_utc_datetime_to_microseconds(timestamp_datetime: datetime) -> float:
    """Return microseconds since the epoch; see `convert_utc_datetime_to_nanoseconds`."""
    return convert_utc_timestamp_to_microseconds(timestamp_datetime.timestamp(), TimeUnits.SECONDS)


def us_since_epoch_to_human_readable_time(us_since_epoch: float) -> str:
    """Return a time in UTC; before the microseconds stands a colon, as it always did.

    >>> us_since_epoch_to_human_readable_time(1591160699457089)
    '2020-06-03T05:04:59:457089'
    """
    return datetime.fromtimestamp(us_since_epoch / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S:%f")


def ns_since_epoch_to_human_readable_time(ns_since_epoch: float) -> str:
    """Return a time in UTC; see `us_since_epoch_to_human_readable_time`."""
    return datetime.fromtimestamp(ns_since_epoch / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S:%f")


def str2bool(v: Any) -> bool:
    """Return the truth that a string spells.

    Raises
    ------
    ValueError
        If it spells none.

    >>> str2bool("True"), str2bool("off"), str2bool(True)
    (True, False, True)
    """
    if isinstance(v, bool):
        return v
    text = str(v).strip().lower()
    if text not in _TRUE | _FALSE:
        msg = f"A boolean must be true or false, got {v!r}."
        raise ValueError(msg)
    return text in _TRUE


# -- names of system metrics' files -----------------------------------------------------------


def validate_system_profiler_file(filename: str) -> bool:
    """Say whether a path is one of system metrics.

    >>> validate_system_profiler_file("/p/system/incremental/2020060500/1591160699.algo-1.json")
    True
    """
    return _SYSTEM_NAME.fullmatch(filename) is not None


def get_node_id_from_system_profiler_filename(filename: str) -> str | None:
    """Return the node of a file of system metrics; None for any other.

    >>> get_node_id_from_system_profiler_filename("/p/system/incremental/1591160699.algo-1.json")
    'algo-1'
    """
    found = _SYSTEM_NAME.fullmatch(filename)
    return None if found is None else found[2]


def get_utctimestamp_us_since_epoch_from_system_profiler_file(filename: str) -> int | None:
    """Return the microsecond with which a file of system metrics begins; None for any other.

    >>> name = "/p/system/incremental/1591160699.algo-1.json"
    >>> get_utctimestamp_us_since_epoch_from_system_profiler_file(name)
    1591160699000000
    """
    found = _SYSTEM_NAME.fullmatch(filename)
    return None if found is None else int(found[1]) * 1_000_000


# -- names of timelines -----------------------------------------------------------------------


def is_valid_tracefilename(filename: str) -> bool:
    """Say whether a path is that of a timeline: below ``pevents``, with two ``_`` or more.

    >>> is_valid_tracefilename("/p/framework/pevents/20200702/15930_11-algo-1_model_timeline.json")
    True
    """
    return filename.endswith(".json") and "pevents" in filename and filename.count("_") > 1


def is_valid_tfprof_tracefilename(filename: str) -> bool:
    """Say whether a path is that of a detailed profile of TensorFlow."""
    return filename.endswith("trace.json.gz") and "tensorflow/detailed_profiling" in filename


def get_node_id_from_tracefilename(filename: str) -> str:
    """Return the node of a timeline as its name has it; "" if it has none.

    >>> get_node_id_from_tracefilename("/p/pevents/20200702/15930_11-algo-1_model_timeline.json")
    '11-algo-1'
    """
    if is_valid_tracefilename(filename):
        parts = PurePosixPath(filename).name.split("_")
        return parts[1] if len(parts) > 1 else ""
    return read_tf_profiler_metadata_file(filename)[0]


def get_timestamp_from_tracefilename(filename: str) -> int:
    """Return the microsecond of the last event's end of a timeline; 0 if its name does not say it.

    >>> get_timestamp_from_tracefilename("/p/pevents/20200702/15930_11-algo-1_model_timeline.json")
    15930
    """
    if is_valid_tracefilename(filename):
        stamp = PurePosixPath(filename).name.split("_")[0]
        return int(stamp) if stamp.isdecimal() else 0
    return int(read_tf_profiler_metadata_file(filename)[2])


def parse_metadata_name(name: str) -> tuple[str, int, int] | None:
    """Return node, start and end (microseconds) that the name of a ``.metadata`` file says.

    >>> parse_metadata_name("11-algo-1_1600000000000000_1600000001000000.metadata")
    ('11-algo-1', 1600000000000000, 1600000001000000)
    """
    found = _METADATA_NAME.fullmatch(name.rpartition("/")[2])
    return None if found is None else (found[1], int(found[2]), int(found[3]))


def tf_metadata(store: TrialStore, key: str) -> tuple[str, int, int] | None:
    """Return node, start and end (microseconds) of a detailed profile of TensorFlow.

    They are in the name of a ``.metadata`` file below the folder four above the profile. If several
    nodes left theirs, that of the profile's host is taken, and otherwise the first.

    Parameters
    ----------
    store, key
        Where the profile is.

    Returns
    -------
    tuple or None
        None if there is no such file.
    """
    parts = key.split("/")
    folder = "".join(f"{part}/" for part in parts[:-_FOLDERS_ABOVE_TRACE])
    names = (name for name in store.list_keys(folder) if name.endswith(".metadata"))
    found = [one for name in names if (one := parse_metadata_name(name)) is not None]
    host = parts[-1].removesuffix(".trace.json.gz")
    return min(found, key=lambda one: not one[0].endswith(host), default=None)


def read_tf_profiler_metadata_file(file_path: str) -> tuple[str, str, str]:
    """Return node, start and end (microseconds, as texts) of a detailed profile of TensorFlow.

    Parameters
    ----------
    file_path
        Its full path or S3 address.

    Returns
    -------
    tuple
        ``("", "0", "0")`` if it is none, or has no ``.metadata`` file.
    """
    if not is_valid_tfprof_tracefilename(file_path):
        return "", "0", "0"
    root, _, key = file_path.rpartition("tensorflow/detailed_profiling/")
    store = open_store(root) if is_s3(file_path) else LocalStore(root or ".")
    found = tf_metadata(store, f"tensorflow/detailed_profiling/{key}")
    return ("", "0", "0") if found is None else (found[0], str(found[1]), str(found[2]))
