"""End marks: the last process of a training job that ends marks the end of its timelines."""

import os
from typing import Final

from rule_core.environment import ON_SAGEMAKER
from rule_core.profiler.files.file_names import END_MARKS
from rule_core.storage.base import ObjectNotFoundError
from rule_core.storage.publish import publish
from rule_core.storage.uri import open_output

SUPERVISED: Final = "RULE_RUNNER_PROFILE"  # variable with the folder of the recording
ENDED: Final = "framework/ended/"
SYSTEM_END, FRAMEWORK_END = END_MARKS


def mark_begin(folder: str, rank: int) -> None:
    """Forget that this process, or all of the job, has ended before in this folder.

    Nothing is forgotten where somebody else writes the end mark.
    """
    if _is_marked_by_others(folder):
        return
    output = open_output(folder)
    output.remove(f"{ENDED}{rank}")
    if rank == 0:
        output.remove(FRAMEWORK_END)


def mark_end(folder: str, rank: int, world_size: int) -> None:
    """Record that a process has ended; the last one marks the end of the timelines.

    Nothing is recorded where somebody else writes the end mark.
    """
    if _is_marked_by_others(folder):
        return
    output = open_output(folder)
    if world_size > 1:
        publish(output, f"{ENDED}{rank}", b"")
        try:
            ended = {key.removeprefix(ENDED) for key in output.list_keys(ENDED)}
        except ObjectNotFoundError:
            return
        if not ended >= {str(each) for each in range(world_size)}:
            return
    publish(output, FRAMEWORK_END, b"")


def is_supervised(folder: str) -> bool:
    """Return whether the command that started this process looks after a recording.

    It samples the system, and marks the end when all processes have ended.
    """
    return os.environ.get(SUPERVISED) == folder


def _is_marked_by_others(folder: str) -> bool:
    """Return whether SageMaker or a supervising command writes the end mark."""
    return ON_SAGEMAKER in os.environ or is_supervised(folder)
