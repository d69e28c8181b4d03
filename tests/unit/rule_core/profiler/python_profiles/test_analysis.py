"""cProfileAnalysis and PyinstrumentAnalysis: which profiles are chosen, and how they are listed."""

import math
import sys
from pathlib import Path
from typing import Any

import pytest
from python_profile_writer import (
    AFTER_STEPS,
    BEFORE_STEPS,
    BEGAN_US,
    NODE,
    OTHER_NODE,
    point,
    span,
    table,
    write_job,
    write_pyinstrument,
    write_table,
)

from rule_core.exceptions import SMDebugRuntimeError, SMDebugValueError
from rule_core.profiler.python_profiles.analysis import (
    PyinstrumentAnalysis,
    PythonProfileAnalysis,
    cProfileAnalysis,
)
from rule_core.profiler.python_profiles.span import StepPythonProfileStats
from rule_core.profiler.python_profiles.stats import cProfileStats
from rule_core.profiler.python_profiles.types import PythonProfileModes, StepPhase

TRAIN, EVAL = PythonProfileModes.TRAIN, PythonProfileModes.EVAL
BEFORE, AFTER = PythonProfileModes.PRE_STEP_ZERO, PythonProfileModes.POST_HOOK_CLOSE
BEGAN_S = BEGAN_US / 1e6


@pytest.fixture
def analysis(tmp_path: Path) -> cProfileAnalysis:
    return cProfileAnalysis(write_job(tmp_path))


def calls(stats: cProfileStats | None) -> int:
    """Return how often the job called ``forward``; -1 if there is nothing."""
    if stats is None:
        return -1
    (found,) = [one for one in stats.function_stats_list if "(forward)" in one.function_name]
    return found.total_calls


# -- choosing -----------------------------------------------------------------------------------

STEPS: list[Any] = [
    pytest.param((9,), {}, 9, id="one-step"),
    pytest.param((9, 10), {}, 9 + 9 + 10, id="last-step-included"),
    pytest.param(("9", "10"), {}, 9 + 9 + 10, id="texts"),
    pytest.param((9, 12), {}, 2 * (9 + 10 + 11), id="to-the-start-of-the-last"),
    pytest.param((9, 10, TRAIN, StepPhase.FORWARD_PASS_END), {}, 9 + 10, id="start-phase"),
    pytest.param((9,), {"node_id": OTHER_NODE}, 9, id="node"),
    pytest.param((9,), {"node_id": "algo-3"}, -1, id="no-such-node"),
    pytest.param((2,), {"mode": EVAL}, 2, id="mode"),
    pytest.param((2,), {"mode": "eval"}, 2, id="mode-as-word"),
    pytest.param((2,), {}, -1, id="no-such-step"),
]


@pytest.mark.parametrize(("args", "kwargs", "expected"), STEPS)
def test_profiles_are_fetched_by_step(
    args: tuple[Any, ...], kwargs: dict[str, Any], expected: int, analysis: cProfileAnalysis
) -> None:
    assert expected == calls(analysis.fetch_profile_stats_by_step(*args, **kwargs))


HALF_OPEN: list[Any] = [
    pytest.param((9, 10), {}, 9 + 9, id="one-step"),
    pytest.param((9,), {}, 9 + 9, id="one-step-by-default"),
    pytest.param(("9", "11"), {}, 2 * (9 + 10), id="texts"),
    pytest.param((9, 12), {"node_id": OTHER_NODE}, 2 * (9 + 10 + 11), id="all"),
    pytest.param((9, 9), {}, -1, id="empty"),
    pytest.param((2, 3, "eval"), {}, 2, id="mode"),
    pytest.param((9, 11, TRAIN, "stepstart", "forwardpassend"), {}, 9 + 9 + 10, id="end-phase"),
]


@pytest.mark.parametrize(("args", "kwargs", "expected"), HALF_OPEN)
def test_the_documented_name_takes_half_open_ranges(
    args: tuple[Any, ...], kwargs: dict[str, Any], expected: int, analysis: cProfileAnalysis
) -> None:
    assert expected == calls(analysis.fetch_python_profile_stats_by_step(*args, **kwargs))


@pytest.mark.parametrize("by_time", ["fetch_profile_stats", "fetch_python_profile_stats"])
def test_profiles_are_fetched_by_time(by_time: str, analysis: cProfileAnalysis) -> None:
    fetch = getattr(analysis, f"{by_time}_by_time")
    assert calls(fetch(BEGAN_S + 9, BEGAN_S + 9.1)) == 9
    assert calls(fetch(BEGAN_S + 9.2, BEGAN_S + 10)) == 9 + 9 + 10
    assert calls(fetch(BEGAN_S + 15, BEGAN_S + 15, OTHER_NODE)) == 2
    assert calls(fetch(BEGAN_S + 12, BEGAN_S + 13)) == -1


def test_a_span_around_the_interval_of_time_is_not_missed(analysis: cProfileAnalysis) -> None:
    assert calls(analysis.fetch_profile_stats_by_time(BEGAN_S + 0.4, BEGAN_S + 0.6)) == 100


def test_profiles_are_fetched_by_mode_and_end(analysis: cProfileAnalysis) -> None:
    assert calls(analysis.fetch_profile_stats_between_modes(BEFORE, TRAIN)) == 100
    assert calls(analysis.fetch_profile_stats_between_modes("train", "train")) == 60
    assert calls(analysis.fetch_profile_stats_between_modes(TRAIN, EVAL)) == -1
    assert calls(analysis.fetch_pre_step_zero_profile_stats()) == 100
    assert calls(analysis.fetch_post_hook_close_profile_stats(OTHER_NODE)) == 200


def test_what_cannot_be_meant_is_refused(analysis: cProfileAnalysis) -> None:
    with pytest.raises(SMDebugValueError, match=r"A step must be a whole number, got 'x'\."):
        analysis.fetch_profile_stats_by_step("x")
    with pytest.raises(SMDebugValueError, match=r"A step must be a whole number, got 9\.5\."):
        analysis.fetch_python_profile_stats_by_step(9, 9.5)  # type: ignore[arg-type]  # wrong
    with pytest.raises(SMDebugValueError, match=r"The mode of a Python profile must be one of"):
        analysis.fetch_profile_stats_between_modes("train", "test")
    with pytest.raises(SMDebugValueError, match=r"The phase of a step must be one of"):
        analysis.fetch_profile_stats_by_step(9, start_phase="begin")


def test_where_there_is_nothing_it_is_reported(
    analysis: cProfileAnalysis, capsys: pytest.CaptureFixture[str]
) -> None:
    assert analysis.fetch_profile_stats_by_step(99) is None
    assert capsys.readouterr().out == "There are no Python profiles of that.\n"


# -- by phase -------------------------------------------------------------------------------------


def test_profiles_are_added_up_by_pairs_of_modes(analysis: cProfileAnalysis) -> None:
    found = analysis.fetch_profile_stats_by_training_phase(node_id=OTHER_NODE)
    expected = {(TRAIN, TRAIN): 60, (EVAL, EVAL): 2, (BEFORE, TRAIN): 100, (BEFORE, AFTER): 200}
    assert expected == {pair: calls(stats) for pair, stats in found.items()}
    assert list(expected) == list(found)


def test_the_end_of_the_job_is_not_taken_for_its_beginning(analysis: cProfileAnalysis) -> None:
    found = analysis.fetch_profile_stats_by_job_phase()
    expected = {"initialization": 100, "training_loop": 62, "finalization": 200}
    assert expected == {phase: calls(stats) for phase, stats in found.items()}


def test_parts_of_a_job_are_added_up(tmp_path: Path) -> None:
    write_table(tmp_path, BEFORE_STEPS, table(1))
    write_table(tmp_path, BEFORE_STEPS.replace("train-1", "eval-0"), table(2))
    write_table(tmp_path, AFTER_STEPS, table(4))
    last = f"{point('train', 9, 'stepend', 9)}_{point('posthookclose', '*', 'end', 10)}"
    write_table(tmp_path, last, table(8))
    found = cProfileAnalysis(tmp_path).fetch_profile_stats_by_job_phase()
    assert {phase: calls(stats) for phase, stats in found.items() if phase != "training_loop"} == {
        "initialization": 3,
        "finalization": 12,
    }
    assert found["training_loop"].function_stats_list == []


def test_a_job_without_steps_is_its_initialization(tmp_path: Path) -> None:
    whole = f"{point('prestepzero', '*', 'start', 0)}_{point('posthookclose', '*', 'end', 9)}"
    write_table(tmp_path, whole, table(1))
    found = cProfileAnalysis(tmp_path).fetch_profile_stats_by_job_phase()
    assert list(found) == ["initialization", "training_loop"]


# -- listing --------------------------------------------------------------------------------------


def test_the_list_is_a_frame_with_a_row_for_each_file(analysis: cProfileAnalysis) -> None:
    frame = analysis.list_profile_stats()
    assert list(frame.columns) == [
        *("profiler_name", "framework", "node_id"),
        *("start_mode", "start_step", "start_phase", "start_time_since_epoch_in_micros"),
        *("end_mode", "end_step", "end_phase", "end_time_since_epoch_in_micros"),
        "stats_path",
    ]
    assert len(frame) == 2 * 9
    first, last = frame.iloc[0].to_dict(), frame.iloc[-1].to_dict()
    assert first | {"stats_path": ""} == {
        "profiler_name": "cprofile",
        "framework": "pytorch",
        "node_id": NODE,
        "start_mode": "prestepzero",
        "start_step": -1,
        "start_phase": StepPhase.START,
        "start_time_since_epoch_in_micros": float(BEGAN_US),
        "end_mode": "train",
        "end_step": 1,
        "end_phase": StepPhase.STEP_START,
        "end_time_since_epoch_in_micros": float(BEGAN_US + 1_000_000),
        "stats_path": "",
    }
    assert (last["end_mode"], last["end_step"]) == ("posthookclose", math.inf)
    assert [str(frame[name].dtype) for name in ("start_step", "end_step")] == ["int64", "float64"]
    times = ["start_time_since_epoch_in_micros", "end_time_since_epoch_in_micros"]
    assert [str(frame[name].dtype) for name in times] == ["float64", "float64"]
    assert frame[[times[0], "node_id"]].apply(tuple, axis=1).is_monotonic_increasing
    assert all(Path(path).is_file() for path in frame["stats_path"])


def test_steps_that_all_have_an_end_are_whole_numbers(tmp_path: Path) -> None:
    write_table(tmp_path, span(9), table())
    frame = cProfileAnalysis(tmp_path).list_profile_stats()
    assert str(frame["end_step"].dtype) == "int64"


def test_nothing_is_listed_as_an_empty_frame(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    analysis = cProfileAnalysis(tmp_path)
    assert analysis.list_profile_stats().empty
    assert capsys.readouterr().out == "There are no Python profiles.\n"
    assert analysis.list_available_node_ids() == []
    assert analysis.fetch_profile_stats_by_step(9) is None
    assert analysis.fetch_profile_stats_by_training_phase() == {}


def test_nodes_are_listed(analysis: cProfileAnalysis) -> None:
    assert analysis.list_available_node_ids() == [NODE, OTHER_NODE]


def test_new_files_are_seen_if_they_are_looked_for(tmp_path: Path) -> None:
    analysis = cProfileAnalysis(write_job(tmp_path))
    write_table(tmp_path, span(30), table(30))
    write_table(tmp_path, span(30), table(30), node="13-algo-3")
    assert calls(analysis.fetch_profile_stats_by_step(30, refresh_stats=False)) == -1
    assert len(analysis.list_available_node_ids(refresh_stats=False)) == 2
    assert len(analysis.list_profile_stats(refresh_stats=False)) == 18
    assert calls(analysis.fetch_profile_stats_by_step(30)) == 30
    assert len(analysis.list_available_node_ids(refresh_stats=False)) == 3


def test_each_analysis_sees_the_files_of_its_profiler(tmp_path: Path) -> None:
    write_table(tmp_path, span(9), table())
    write_pyinstrument(tmp_path, span(9))
    profilers = [
        [one.profiler_name for one in kind(tmp_path).python_profile_stats]
        for kind in (cProfileAnalysis, PyinstrumentAnalysis, PythonProfileAnalysis)
    ]
    assert profilers == [["cprofile"], ["pyinstrument"] * 2, ["cprofile", *["pyinstrument"] * 2]]
    found = PythonProfileAnalysis(tmp_path).fetch_profile_stats_by_step(9)
    assert [StepPythonProfileStats] * 3 == [type(one) for one in found]


def test_frames_need_pandas(analysis: cProfileAnalysis, monkeypatch: pytest.MonkeyPatch) -> None:
    stats = analysis.fetch_profile_stats_by_step(9)
    monkeypatch.setitem(sys.modules, "pandas", None)
    for call in (analysis.list_profile_stats, stats.get_function_stats):
        with pytest.raises(SMDebugRuntimeError, match=r"pip install 'rule-runner\[profiler\]'\.$"):
            call()
