"""Modes, phases, profilers and timers of Python profiles, and their names in files."""

import os
from enum import Enum, IntEnum
from typing import Any, Final

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.modes import ModeKeys
from rule_core.profiler.files.constants import CPROFILE_NAME, PYINSTRUMENT_NAME


class PythonProfileModes(IntEnum):
    """The mode of the training job when a Python profile began or ended."""

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4  # a job that sets no mode
    PRE_STEP_ZERO = 5  # before the first step
    POST_HOOK_CLOSE = 6  # after the hook was closed


class StepPhase(Enum):
    """The phase of a step in which a Python profile began or ended."""

    START = "start"  # of the script
    STEP_START = "stepstart"
    FORWARD_PASS_END = "forwardpassend"  # noqa: S105 - part of file names, not a password
    STEP_END = "stepend"
    END = "end"  # of the script


class PythonProfilerName(Enum):
    """The profiler of a Python profile."""

    CPROFILE = CPROFILE_NAME
    PYINSTRUMENT = PYINSTRUMENT_NAME


class cProfileTimer(Enum):  # noqa: N801 - the documented name
    """The timer of cProfile."""

    TOTAL_TIME = "total_time"
    CPU_TIME = "cpu_time"
    OFF_CPU_TIME = "off_cpu_time"
    DEFAULT = "default"  # each of the three in turn


class ProfileArgumentError(SMDebugTypeError, AssertionError):
    """An argument of the wrong type; smdebug raised `AssertionError`."""


class ProfileFolderError(SMDebugValueError, AssertionError):
    """A folder or address without Python profiles; smdebug raised `AssertionError`."""


_MODES: Final = {mode.name.lower().replace("_", ""): mode for mode in PythonProfileModes}


def str_to_python_profile_mode(mode_str: str) -> PythonProfileModes:
    """Return the mode for its name in the folder of a profile.

    Raises
    ------
    SMDebugValueError
        If the mode is unknown.

    >>> str_to_python_profile_mode("prestepzero").name
    'PRE_STEP_ZERO'
    """
    try:
        return _MODES[mode_str]
    except (KeyError, TypeError):
        raise SMDebugValueError(
            f"The mode of a Python profile must be one of {', '.join(_MODES)}, got {mode_str!r}."
        ) from None


def python_profile_mode_to_str(mode: PythonProfileModes) -> str:
    """Return the name of a mode in folders.

    Raises
    ------
    SMDebugValueError
        If it is invalid.

    >>> python_profile_mode_to_str(PythonProfileModes.POST_HOOK_CLOSE)
    'posthookclose'
    """
    return to_mode(mode).name.lower().replace("_", "")


def mode_keys_to_python_profile_mode(mode: ModeKeys) -> PythonProfileModes:
    """Return the mode of Python profiles for a mode of steps.

    >>> mode_keys_to_python_profile_mode(ModeKeys.EVAL).name
    'EVAL'
    """
    return PythonProfileModes(mode.value)


def to_mode(mode: Any) -> PythonProfileModes:
    """Convert a mode, a mode of steps, a number or a name to a mode.

    Raises
    ------
    SMDebugValueError
        If it is invalid.

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
        raise SMDebugValueError(
            f"The mode of a Python profile must be one of PythonProfileModes, got {mode!r}."
        ) from None


def to_phase(phase: object) -> StepPhase:
    """Convert a phase or its name to a phase.

    Raises
    ------
    SMDebugValueError
        If it is invalid.

    >>> to_phase("stepend") is StepPhase.STEP_END
    True
    """
    try:
        return StepPhase(phase.lower().replace("_", "") if isinstance(phase, str) else phase)
    except ValueError:
        names = ", ".join(member.value for member in StepPhase)
        raise SMDebugValueError(
            f"The phase of a step must be one of {names}, got {phase!r}."
        ) from None


def to_step(step: object) -> int:
    """Convert a number or a string of digits to a step.

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
        raise SMDebugValueError(f"A step must be a whole number, got {step!r}.")
    return int(step.__index__())


# -- timers of cProfile, in seconds -----------------------------------------------------------


def total_time() -> float:
    """Return the elapsed time."""
    return os.times().elapsed


def cpu_time() -> float:
    """Return the CPU time of this process."""
    times = os.times()
    return times.system + times.user


def off_cpu_time() -> float:
    """Return the elapsed time minus the CPU time of this process."""
    times = os.times()
    return times.elapsed - (times.system + times.user)
