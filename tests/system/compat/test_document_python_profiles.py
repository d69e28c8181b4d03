"""Python profiles as they are documented: modes, phases, and each way to fetch them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from python_profile_writer import (
    AFTER_STEPS,
    BEFORE_STEPS,
    BEGAN_US,
    NODE,
    span,
    table,
    write_pyinstrument,
    write_table,
)

from smdebug.profiler.analysis.python_profile_analysis import (
    PyinstrumentAnalysis,
    PythonProfileAnalysis,
    cProfileAnalysis,
)
from smdebug.profiler.analysis.utils.python_profile_analysis_utils import (
    Metrics,
    StepPhase,
    StepPythonProfileStats,
    cProfileFunctionStats,
    cProfileStats,
)
from smdebug.profiler.python_profile_utils import PythonProfileModes

SESSION = {"root_frame": {"children": [{"time": 0.1}]}}
BEGAN_S = BEGAN_US / 1e6


@pytest.fixture(scope="module")
def profiles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write profiles before, between and after steps 5 to 7, of both profilers."""
    base = tmp_path_factory.mktemp("profiles")
    names = [BEFORE_STEPS, *(span(step) for step in (5, 6, 7)), span(8, mode="eval"), AFTER_STEPS]
    for calls, name in enumerate(names, 1):
        write_table(base, name, table(calls, 0.5))
        write_pyinstrument(base, name, SESSION)
    return base / "framework" / "pytorch"


@pytest.fixture
def cprofile(profiles: Path) -> cProfileAnalysis:
    return cProfileAnalysis(local_profile_dir=str(profiles / "cprofile"))


@pytest.fixture
def pyinstrument(profiles: Path) -> PyinstrumentAnalysis:
    return PyinstrumentAnalysis(local_profile_dir=str(profiles / "pyinstrument"))


@pytest.mark.parametrize(
    "name", ["TRAIN", "EVAL", "PREDICT", "GLOBAL", "PRE_STEP_ZERO", "POST_HOOK_CLOSE"]
)
def test_mode(name: str) -> None:
    assert PythonProfileModes[name].name == name


@pytest.mark.parametrize("name", ["START", "STEP_START", "FORWARD_PASS_END", "STEP_END", "END"])
def test_phase(name: str) -> None:
    assert StepPhase[name].value == name.replace("_", "").lower()


@pytest.mark.parametrize("kind", [cProfileAnalysis, PyinstrumentAnalysis])
def test_both_are_analyses(kind: type) -> None:
    assert issubclass(kind, PythonProfileAnalysis)


TRAIN = PythonProfileModes.TRAIN
FETCHED: dict[str, tuple[Callable[[Any], Any], int]] = {
    "by time": (
        lambda analysis: analysis.fetch_python_profile_stats_by_time(BEGAN_S + 4.5, BEGAN_S + 6.9),
        2 + 3,
    ),
    "by step": (
        lambda analysis: analysis.fetch_python_profile_stats_by_step(
            start_step=5,
            end_step=7,
            mode=TRAIN,
            start_phase=StepPhase.STEP_START,
            end_phase=StepPhase.STEP_END,
        ),
        2 + 3,
    ),
    "by one step": (lambda analysis: analysis.fetch_python_profile_stats_by_step(6), 3),
    "between modes": (
        lambda analysis: analysis.fetch_profile_stats_between_modes(
            start_mode=TRAIN, end_mode=TRAIN
        ),
        2 + 3 + 4,
    ),
    "before step 0": (lambda analysis: analysis.fetch_pre_step_zero_profile_stats(), 1),
    "after the hook": (lambda analysis: analysis.fetch_post_hook_close_profile_stats(), 6),
}


@pytest.mark.parametrize("how", FETCHED)
def test_fetched_from_cprofile(cprofile: cProfileAnalysis, how: str) -> None:
    fetch, calls = FETCHED[how]
    result = fetch(cprofile)
    assert isinstance(result, cProfileStats)
    functions = {function.function_name: function for function in result.function_stats_list}
    assert functions["train.py:7(forward)"].total_calls == calls


@pytest.mark.parametrize("how", FETCHED)
def test_fetched_from_pyinstrument(pyinstrument: PyinstrumentAnalysis, how: str) -> None:
    fetch, _ = FETCHED[how]
    result = fetch(pyinstrument)
    assert result
    assert all(profile.json_stats == SESSION for profile in result)
    assert all(profile.html_file_path.endswith(".html") for profile in result)


def test_by_training_phase(cprofile: cProfileAnalysis) -> None:
    result = cprofile.fetch_profile_stats_by_training_phase()
    assert (TRAIN, TRAIN) in result
    assert all(isinstance(profile, cProfileStats) for profile in result.values())


def test_by_job_phase(cprofile: cProfileAnalysis) -> None:
    result = cprofile.fetch_profile_stats_by_job_phase()
    assert set(result) == {"initialization", "training_loop", "finalization"}


def test_the_list_of_profiles(cprofile: cProfileAnalysis) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed.")
    result = cprofile.list_profile_stats()
    assert len(result) == 6
    assert {"profiler_name", "framework", "start_step", "end_step", "stats_path"} <= set(result)


def test_the_nodes(cprofile: cProfileAnalysis) -> None:
    assert cprofile.list_available_node_ids() == [NODE]


@pytest.mark.parametrize("by", list(Metrics))
def test_top_functions(
    cprofile: cProfileAnalysis, by: Metrics, capsys: pytest.CaptureFixture[str]
) -> None:
    stats = cprofile.fetch_python_profile_stats_by_step(5)
    stats.print_top_n_functions(by, n=2)
    assert "forward" in capsys.readouterr().out


def test_functions_as_a_frame(cprofile: cProfileAnalysis) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed.")
    frame = cprofile.fetch_python_profile_stats_by_step(5).get_function_stats()
    assert "train.py:7(forward)" in set(frame["function name"])


FUNCTION = cProfileFunctionStats(
    ("train.py", 7, "forward"), (1, 2, 0.5, 1.5, {("train.py", 1, "<module>"): (1, 1, 0.5, 1.5)})
)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("function_name", "train.py:7(forward)"),
        ("prim_calls", 1),
        ("total_calls", 2),
        ("total_time", 0.5),
        ("cumulative_time", 1.5),
        ("callers", ["train.py:1(<module>)"]),
    ],
)
def test_attribute_of_a_function(attribute: str, value: object) -> None:
    assert getattr(FUNCTION, attribute) == value


STATS = StepPythonProfileStats("pytorch", "cprofile", NODE, span(5), "/p/python_stats")
BEFORE = StepPythonProfileStats("pytorch", "cprofile", NODE, BEFORE_STEPS, "/p/python_stats")


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ("profiler_name", "cprofile"),
        ("framework", "pytorch"),
        ("node_id", NODE),
        ("start_mode", TRAIN),
        ("start_phase", StepPhase.STEP_START),
        ("start_step", 5),
        ("start_time_since_epoch_in_micros", BEGAN_US + 5_000_000),
        ("end_mode", TRAIN),
        ("end_step", 5),
        ("end_phase", StepPhase.STEP_END),
        ("end_time_since_epoch_in_micros", BEGAN_US + 5_500_000),
        ("stats_path", "/p/python_stats"),
    ],
)
def test_attribute_of_a_profile(attribute: str, value: object) -> None:
    assert getattr(STATS, attribute) == value


ANSWERS: dict[str, tuple[Callable[[], bool], bool]] = {
    "its modes": (lambda: STATS.has_start_and_end_mode(TRAIN, TRAIN), True),
    "other modes": (lambda: STATS.has_start_and_end_mode(TRAIN, PythonProfileModes.EVAL), False),
    "its time": (lambda: STATS.in_time_interval(BEGAN_US, BEGAN_US + 5_100_000), True),
    "another time": (lambda: STATS.in_time_interval(BEGAN_US, BEGAN_US + 4_900_000), False),
    "its step": (
        lambda: STATS.in_step_interval(5, 6, StepPhase.STEP_START, StepPhase.STEP_END),
        True,
    ),
    "another step": (
        lambda: STATS.in_step_interval(6, 7, StepPhase.STEP_START, StepPhase.STEP_END),
        False,
    ),
    "not before steps": (STATS.has_pre_step_zero_profile_stats, False),
    "before steps": (BEFORE.has_pre_step_zero_profile_stats, True),
    "not after the hook": (STATS.has_post_hook_close_profile_stats, False),
    "its node": (lambda: STATS.has_node_id(NODE), True),
    "another node": (lambda: STATS.has_node_id("other"), False),
}


@pytest.mark.parametrize("question", ANSWERS)
def test_question_about_a_profile(question: str) -> None:
    ask, answer = ANSWERS[question]
    assert ask() is answer


def test_start_before_step_zero_is_minus_one() -> None:
    assert BEFORE.start_step == -1
