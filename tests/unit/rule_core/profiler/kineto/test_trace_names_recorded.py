from pathlib import Path

from rule_core.profiler.kineto.trace_names import recorded_traces
from rule_core.profiler.recording.layout import kineto_key
from rule_core.storage.uri import open_store

SECOND = 1_000_000
BEGIN = 1_700_000_040 * SECOND


def test_traces_of_a_recording_by_time(tmp_path: Path) -> None:
    keys = [
        kineto_key(6, "1-box", BEGIN + SECOND, BEGIN + 2 * SECOND, is_inside=True),
        kineto_key(5, "0-box", BEGIN, BEGIN + SECOND, is_inside=False),
    ]
    for key in (*keys, "kineto/notes.txt", "kineto/x/<b>_1_2.pt.trace.json"):
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).touch()
    traces = recorded_traces(open_store(str(tmp_path)))
    assert [(trace.step, trace.node, trace.start_us - BEGIN) for trace in traces] == [
        (5, "0-box", 0),
        (6, "1-box", SECOND),
    ]
    assert [trace.key for trace in traces] == keys[::-1]
    assert traces[0].end_us == BEGIN + SECOND


def test_a_folder_that_is_gone_has_none(tmp_path: Path) -> None:
    assert recorded_traces(open_store(str(tmp_path / "gone"))) == []
