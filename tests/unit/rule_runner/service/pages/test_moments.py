from pathlib import Path

import msgspec
import reports

from rule_core.profiler.recording.layout import kineto_key
from rule_runner.results.schema import WindowTimes
from rule_runner.service.pages.moments import TRACES_SHOWN, Moments

MINUTE = 60_000_000
BEGIN = 1_600_000_020_500_000
RESULT = msgspec.structs.replace(reports.fired(), unit="window", windows=WindowTimes(BEGIN, MINUTE))


def test_a_window_has_a_time_and_a_command(tmp_path: Path) -> None:
    moment = Moments(str(tmp_path / "my run")).of(RESULT, 2)
    assert moment is not None
    assert (moment.start_ms, moment.end_ms) == (1_600_000_140_500, 1_600_000_200_500)
    assert (moment.clock, moment.span) == (
        "12:29:00",
        "2020-09-13 12:29:00 to 12:30:01 UTC",
    )
    assert moment.command == (
        f"rule-runner profile timeline '{tmp_path}/my run' -o trace.json "
        "--start 2020-09-13T12:29:00Z --end 2020-09-13T12:30:01Z"
    )
    assert moment.traces == []


def test_traces_of_the_window_are_named(tmp_path: Path) -> None:
    for minute in (0, 2, 2, 3, *[2] * 2 * TRACES_SHOWN):
        start = BEGIN + minute * MINUTE + len(list(tmp_path.rglob("*.json.gz")))
        path = tmp_path / kineto_key(minute, "0-box", start, start + 9, is_inside=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    moments = Moments(str(tmp_path))
    second, fourth = moments.of(RESULT, 2), moments.of(RESULT, 4)
    assert second is not None
    assert fourth is not None
    assert len(second.traces) == TRACES_SHOWN
    assert all(f"{tmp_path}/kineto/" in trace and "/000000002/" in trace for trace in second.traces)
    assert fourth.traces == []


def test_steps_and_impossible_times_have_no_moment() -> None:
    assert Moments("/runs/a").of(reports.fired(), 2) is None
    late = msgspec.structs.replace(RESULT, windows=WindowTimes(1 << 62, MINUTE))
    assert Moments("/runs/a").of(late, 2) is None
