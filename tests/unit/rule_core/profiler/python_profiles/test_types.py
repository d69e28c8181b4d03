"""Modes, phases, steps and timers of Python profiles."""

import re
from typing import Any

import pytest

from rule_core.exceptions import SMDebugValueError
from rule_core.modes import ModeKeys
from rule_core.profiler.python_profiles import types as utils
from rule_core.profiler.python_profiles.types import (
    ProfileArgumentError,
    ProfileFolderError,
    PythonProfileModes,
    PythonProfilerName,
    StepPhase,
    cProfileTimer,
)

WORDS = {
    "train": PythonProfileModes.TRAIN,
    "eval": PythonProfileModes.EVAL,
    "predict": PythonProfileModes.PREDICT,
    "global": PythonProfileModes.GLOBAL,
    "prestepzero": PythonProfileModes.PRE_STEP_ZERO,
    "posthookclose": PythonProfileModes.POST_HOOK_CLOSE,
}


def test_numbers_and_words_are_those_of_the_files() -> None:
    assert [int(mode) for mode in PythonProfileModes] == [1, 2, 3, 4, 5, 6]
    words = ["start", "stepstart", "forwardpassend", "stepend", "end"]
    assert words == [phase.value for phase in StepPhase]
    assert [one.value for one in PythonProfilerName] == ["cprofile", "pyinstrument"]
    timers = ["total_time", "cpu_time", "off_cpu_time", "default"]
    assert timers == [one.value for one in cProfileTimer]


@pytest.mark.parametrize(("word", "mode"), WORDS.items())
def test_modes_have_words(word: str, mode: PythonProfileModes) -> None:
    assert mode is utils.str_to_python_profile_mode(word)
    assert word == utils.python_profile_mode_to_str(mode)
    assert mode is utils.to_mode(word) is utils.to_mode(mode.name) is utils.to_mode(int(mode))


@pytest.mark.parametrize("mode", ModeKeys)
def test_modes_of_steps_are_modes_of_profiles(mode: ModeKeys) -> None:
    assert mode.name == utils.mode_keys_to_python_profile_mode(mode).name
    assert mode.name == utils.to_mode(mode).name


@pytest.mark.parametrize("phase", StepPhase)
def test_phases_have_words(phase: StepPhase) -> None:
    assert phase is utils.to_phase(phase) is utils.to_phase(phase.value)
    assert phase is utils.to_phase(phase.name)


BAD: list[Any] = [
    (utils.str_to_python_profile_mode, "TRAIN", "train, eval, .*, posthookclose, got 'TRAIN'."),
    (utils.str_to_python_profile_mode, ["x"], "got ['x']."),
    (utils.python_profile_mode_to_str, 7, "The mode of a Python profile must be .*, got 7."),
    (utils.to_mode, "training", "must be one of train, .*, got 'training'."),
    (utils.to_mode, None, "must be one of PythonProfileModes, got None."),
    (utils.to_phase, "begin", "start, stepstart, forwardpassend, stepend, end, got 'begin'."),
    (utils.to_phase, 1, "The phase of a step must be .*, got 1."),
    (utils.to_step, "nine", "A step must be a whole number, got 'nine'."),
    (utils.to_step, "-1", "A step must be a whole number, got '-1'."),
    (utils.to_step, "²", "A step must be a whole number, got '²'."),
    (utils.to_step, 9.0, "A step must be a whole number, got 9.0."),
    (utils.to_step, True, "A step must be a whole number, got True."),
]


@pytest.mark.parametrize(("convert", "value", "message"), BAD)
def test_anything_else_is_refused(convert: Any, value: object, message: str) -> None:
    pattern = re.escape(message).replace(r"\.\*", ".*") + "$"
    with pytest.raises(SMDebugValueError, match=pattern):
        convert(value)


def test_steps_may_be_texts() -> None:
    assert [utils.to_step(one) for one in (9, " 9 ", "0", -1)] == [9, 9, 0, -1]


def test_errors_are_those_that_the_older_library_asserted() -> None:
    assert issubclass(ProfileArgumentError, (AssertionError, TypeError))
    assert issubclass(ProfileFolderError, AssertionError)
    assert issubclass(ProfileFolderError, ValueError)


def test_timers_measure_what_they_are_called() -> None:
    before = utils.total_time(), utils.cpu_time()
    assert utils.total_time() >= before[0]
    assert utils.cpu_time() >= before[1]
    assert utils.off_cpu_time() <= utils.total_time()
