"""Times, units and names of files, as rules and notebooks use them."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from rule_core.profiler.files import constants, time_units
from rule_core.profiler.files.time_units import TimeUnits

SYSTEM = "/p/system/incremental/2020060500/1591160699.algo-1.json"
TRACE = "/p/framework/pevents/2020051923/1589930988000000_4487_0000_pythontimeline.json"
STEP = "framework/tensorflow/detailed_profiling/2020/000000005"
PROFILE = f"{STEP}/plugins/profile/x/algo-2.trace.json.gz"


@pytest.mark.parametrize(
    ("unit", "nanoseconds", "microseconds", "seconds"),
    [
        (TimeUnits.SECONDS, 1_500_900_000_000, 1_500_900_000, 1500),
        (TimeUnits.MILLISECONDS, 1_500_900_000, 1_500_900, 1),
        (TimeUnits.MICROSECONDS, 1_500_900, 1500, 0),
        (TimeUnits.NANOSECONDS, 1500.9, 1.5009, 1.5009e-6),
    ],
)
def test_conversions_cut_off_and_nanoseconds_stay_as_they_are(
    unit: TimeUnits, nanoseconds: float, microseconds: float, seconds: float
) -> None:
    assert time_units.convert_utc_timestamp_to_nanoseconds(1500.9, unit) == nanoseconds
    found = time_units.convert_utc_timestamp_to_microseconds(1500.9, unit)
    assert found == pytest.approx(microseconds)
    assert time_units.convert_utc_timestamp_to_seconds(1500.9, unit) == pytest.approx(seconds)


def test_dates() -> None:
    at = datetime(2020, 6, 3, 7, 4, 59, 500_000, tzinfo=timezone(timedelta(hours=2)))
    assert time_units.convert_utc_datetime_to_microseconds(at) == 1591160699500000
    assert time_units.convert_utc_datetime_to_nanoseconds(at) == 1591160699500000000
    text = "2020-06-03T05:04:59:500000"
    assert time_units.us_since_epoch_to_human_readable_time(1591160699500000) == text
    assert time_units.ns_since_epoch_to_human_readable_time(1591160699500000000) == text
    assert datetime.fromtimestamp(0, UTC).year == 1970


@pytest.mark.parametrize("text", ["y", "YES", "t", "True", "on", "1", True], ids=repr)
def test_true(text: object) -> None:
    assert time_units.str2bool(text) is True


@pytest.mark.parametrize("text", ["n", "No", "f", "FALSE", "off", "0", False], ids=repr)
def test_false(text: object) -> None:
    assert time_units.str2bool(text) is False


@pytest.mark.parametrize("text", ["", "maybe", None, 2])
def test_neither(text: object) -> None:
    with pytest.raises(ValueError, match=r"^A boolean must be true or false, got "):
        time_units.str2bool(text)


def test_names_of_system_metrics() -> None:
    assert time_units.validate_system_profiler_file(SYSTEM)
    assert time_units.get_node_id_from_system_profiler_filename(SYSTEM) == "algo-1"
    stamp = time_units.get_utctimestamp_us_since_epoch_from_system_profiler_file
    assert stamp(SYSTEM) == 1591160699000000
    for bad in ("/p/system/1591160699.algo-1.json", f"{SYSTEM}.corrupt", TRACE):
        assert not time_units.validate_system_profiler_file(bad)
        assert time_units.get_node_id_from_system_profiler_filename(bad) is None
        assert stamp(bad) is None


def test_names_of_timelines() -> None:
    assert time_units.is_valid_tracefilename(TRACE)
    assert time_units.get_node_id_from_tracefilename(TRACE) == "4487"
    assert time_units.get_timestamp_from_tracefilename(TRACE) == 1589930988000000
    assert time_units.get_timestamp_from_tracefilename("/pevents/x_y_z.json") == 0
    assert not time_units.is_valid_tracefilename(SYSTEM)
    assert not time_units.is_valid_tfprof_tracefilename(TRACE)
    # The two "_" may be anywhere in the path.
    assert time_units.get_node_id_from_tracefilename("/a_b_c/pevents/notes.json") == ""


def test_detailed_profiles_of_tensorflow(tmp_path: Path) -> None:
    path = f"{tmp_path}/{PROFILE}"
    assert time_units.is_valid_tfprof_tracefilename(path)
    assert time_units.read_tf_profiler_metadata_file(TRACE) == ("", "0", "0")
    for folder in (Path(path).parent, tmp_path / STEP / "below"):
        folder.mkdir(parents=True)
    assert time_units.read_tf_profiler_metadata_file(path) == ("", "0", "0")
    (tmp_path / STEP / "1-algo-1_5_6.metadata").touch()
    (tmp_path / STEP / "below" / "1-algo-2_7_8.metadata").touch()
    (tmp_path / STEP / "notes.metadata").touch()
    assert time_units.read_tf_profiler_metadata_file(path) == ("1-algo-2", "7", "8")
    assert time_units.get_node_id_from_tracefilename(path) == "algo-2"
    assert time_units.get_timestamp_from_tracefilename(path) == 8


def test_old_names_of_constants() -> None:
    assert constants.ENV_TRAIILING_DURATION == "TRAILING_DURATION_MICROSECONDS"
    assert constants.DEFAULT_PREFIX == "framework/pevents"
    assert constants.CONVERT_TO_MICROSECS == 1_000_000
    assert constants.TIME_BUFFER_DEFAULT == 180_000_000
