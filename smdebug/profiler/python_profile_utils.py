"""Modes, phases, profilers and timers of Python profiles, and the words that files use for them."""

import os
from enum import Enum, IntEnum
from typing import Any, Final

from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError
from smdebug.profiler.profiler_constants import CPROFILE_NAME, PYINSTRUMENT_NAME


class PythonProfileModes(IntEnum):
    """What the training job did when a Python profile began or ended."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4  # a job that sets no mode
    PRE_STEP_ZERO = 5  # before the first step
    POST_HOOK_CLOSE = 6  # after the hook was closed


class StepPhase(Enum):
    """Where in a step a Python profile began or ended."""

    START = "start"  # of the script
    STEP_START = "stepstart"
    FORWARD_PASS_END = "forwardpassend"  # noqa: S105 - a word of file names, no password
    STEP_END = "stepend"
    END = "end"  # of the script


class PythonProfilerName(Enum):
    """Which profiler made a Python profile."""

    CPROFILE = CPROFILE_NAME
    PYINSTRUMENT = PYINSTRUMENT_NAME


class cProfileTimer(Enum):  # noqa: N801 - the documented name
    """What cProfile's times are times of."""

    TOTAL_TIME = "total_time"
    CPU_TIME = "cpu_time"
    OFF_CPU_TIME = "off_cpu_time"
    DEFAULT = "default"  # each of the three in turn


class ProfileArgumentError(SMDebugTypeError, AssertionError):
    """An argument of the wrong kind; the older library asserted what it wanted."""


class ProfileFolderError(SMDebugValueError, AssertionError):
    """A folder or address that holds no Python profiles; likewise."""


_MODES: Final = {mode.name.lower().replace("_", ""): mode for mode in PythonProfileModes}


def str_to_python_profile_mode(mode_str: str) -> PythonProfileModes:
    """Return the mode that a word in the name of a profile's folder stands for.

    Raises
    ------
    SMDebugValueError
        If it stands for none.

    >>> str_to_python_profile_mode("prestepzero").name
    'PRE_STEP_ZERO'
    """
    try:
        return _MODES[mode_str]
    except (KeyError, TypeError):
        msg = f"The mode of a Python profile must be one of {', '.join(_MODES)}, got {mode_str!r}."
        raise SMDebugValueError(msg) from None


def python_profile_mode_to_str(mode: PythonProfileModes) -> str:
    """Return the word for a mode.

    Raises
    ------
    SMDebugValueError
        If it is none.

    >>> python_profile_mode_to_str(PythonProfileModes.POST_HOOK_CLOSE)
    'posthookclose'
    """
    return to_mode(mode).name.lower().replace("_", "")


def mode_keys_to_python_profile_mode(mode: ModeKeys) -> PythonProfileModes:
    """Return the mode of Python profiles that is called as a mode of steps is.

    >>> mode_keys_to_python_profile_mode(ModeKeys.EVAL).name
    'EVAL'
    """
    return PythonProfileModes(mode.value)


def to_mode(mode: Any) -> PythonProfileModes:
    """Return a mode that is given as itself, as one of steps, by its number or by its word.

    Raises
    ------
    SMDebugValueError
        If it is none.

    >>> to_mode("train") is to_mode(ModeKeys.TRAIN) is to_mode(1)
    True
    """
    if isinstance(mode, ModeKeys):
        return mode_keys_to_python_profile_mode(mode)
    if isinstance(mode, str):
        return str_to_python_profile_mode(mode.lower().replace("_", ""))
    try:
        return PythonProfileModes(mode)
    except ValueError:
        msg = f"The mode of a Python profile must be one of PythonProfileModes, got {mode!r}."
        raise SMDebugValueError(msg) from None


def to_phase(phase: object) -> StepPhase:
    """Return a phase that is given as itself or by its word.

    Raises
    ------
    SMDebugValueError
        If it is none.

    >>> to_phase("stepend") is StepPhase.STEP_END
    True
    """
    try:
        return StepPhase(phase.lower().replace("_", "") if isinstance(phase, str) else phase)
    except ValueError:
        words = ", ".join(one.value for one in StepPhase)
        msg = f"The phase of a step must be one of {words}, got {phase!r}."
        raise SMDebugValueError(msg) from None


def to_step(step: object) -> int:
    """Return a step that is given as a number or as a text of digits.

    Raises
    ------
    SMDebugValueError
        If it is neither.

    >>> to_step("9"), to_step(9)
    (9, 9)
    """
    if isinstance(step, str) and step.strip().isascii() and step.strip().isdigit():
        return int(step)
    if isinstance(step, bool) or not hasattr(step, "__index__"):
        msg = f"A step must be a whole number, got {step!r}."
        raise SMDebugValueError(msg)
    return int(step.__index__())


# -- timers of cProfile, in seconds since some moment -----------------------------------------


def total_time() -> float:
    """Return the time that has passed."""
    return os.times().elapsed


def cpu_time() -> float:
    """Return the time for which processors worked for this process."""
    times = os.times()
    return times.system + times.user


def off_cpu_time() -> float:
    """Return the time for which no processor worked for this process."""
    times = os.times()
    return times.elapsed - (times.system + times.user)
