"""Shards: which lines of a plan a process judges, by option or by the engine that started it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from rule_runner.errors import UsageError

KUBERNETES: Final = "JOB_COMPLETION_INDEX"
BATCH: Final = "AWS_BATCH_JOB_ARRAY_INDEX"
BATCH_SIZE: Final = "AWS_BATCH_JOB_ARRAY_SIZE"
SLURM: Final = "SLURM_ARRAY_TASK_ID"
_SHARD: Final = re.compile("([0-9]{1,9})/([0-9]{1,9})")


@dataclass(frozen=True, slots=True)
class Shard:
    """One of `count` parts of a plan; `index` counts from 0."""

    index: int
    count: int

    def holds(self, line: int) -> bool:
        """Return whether a line belongs to this shard; lines count from 0.

        >>> [line for line in range(7) if Shard(1, 3).holds(line)]
        [1, 4]
        """
        return line % self.count == self.index

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


WHOLE: Final = Shard(0, 1)


def find_shard(option: str | None, count: int | None, environment: Mapping[str, str]) -> Shard:
    """Return the shard of this process; the whole plan if nothing names one.

    Parameters
    ----------
    option
        ``I/N``, which precedes the environment.
    count
        The number of shards, where neither the option nor the engine says it. Then the index of a
        Slurm array task is its ID; otherwise it is its place in the array.
    environment
        The variables of the process, in which Kubernetes, AWS Batch and Slurm say the index.

    Raises
    ------
    UsageError
        If these contradict each other, or do not make a shard.
    """
    if option is not None:
        if count is not None:
            raise UsageError(
                "Options --shard and --shards cannot be combined: --shard I/N has both numbers."
            )
        return _parsed(option)
    present = [name for name in _ENGINES if name in environment]
    if len(present) > 1:
        raise UsageError(
            f"{' and '.join(present)} are set, so the shard is unclear. Give --shard I/N."
        )
    if not present:
        if count is not None and count > 1:
            raise UsageError(
                f"--shards {count} needs the index of this process: give --shard I/{count}, or run "
                f"where {KUBERNETES}, {BATCH} or {SLURM} is set."
            )
        return WHOLE
    (name,) = present
    index = _number(environment, name)
    subject = f"{name}={index}"
    if count is None:
        index, count = _ENGINES[name](environment, index)
    return _checked(index, count, subject)


def _parsed(text: str) -> Shard:
    """Return the shard that ``I/N`` means."""
    match = _SHARD.fullmatch(text)
    if match is None:
        raise UsageError(
            f"Option --shard must be I/N, such as 0/4 for the first of four, got {text!r}."
        )
    return _checked(int(match[1]), int(match[2]), f"Shard {text!r}")


def _checked(index: int, count: int, subject: str) -> Shard:
    """Return a shard whose index and number fit."""
    if count < 1:
        raise UsageError(f"{subject} is none: there must be at least one shard.")
    if index >= count:
        last = f"the last of {count} shards is {count - 1}" if count > 1 else "the only shard is 0"
        raise UsageError(f"{subject} does not exist: shards count from 0, and {last}.")
    return Shard(index, count)


def _number(environment: Mapping[str, str], name: str) -> int:
    text = environment[name]
    if not (text.isascii() and text.isdigit()):
        raise UsageError(f"Environment variable {name} must be a whole number >= 0, got {text!r}.")
    return int(text)


def _of_kubernetes(environment: Mapping[str, str], index: int) -> tuple[int, int]:
    del environment
    raise UsageError(
        f"{KUBERNETES} is {index}, but Kubernetes does not say how many there are. "
        "Give --shards N, the job's number of completions."
    )


def _of_batch(environment: Mapping[str, str], index: int) -> tuple[int, int]:
    if BATCH_SIZE not in environment:
        raise UsageError(
            f"{BATCH} is {index}, but {BATCH_SIZE} is not set. Give --shards N, the size of the "
            "array."
        )
    return index, _number(environment, BATCH_SIZE)


def _of_slurm(environment: Mapping[str, str], task: int) -> tuple[int, int]:
    names = [f"SLURM_ARRAY_TASK_{name}" for name in ("COUNT", "MIN", "STEP")]
    missing = [name for name in names[:2] if name not in environment]
    if missing:
        raise UsageError(
            f"{SLURM} is {task}, but {' and '.join(missing)} are not set. Give --shards N."
        )
    size, first, step = (_number({names[2]: "1", **environment}, name) for name in names)
    index, remainder = divmod(task - first, max(step, 1))
    if remainder or not 0 <= index < size:
        raise UsageError(
            f"{SLURM}={task} has no place in its array of {size} tasks from {first} in steps of "
            f"{step}. Give --shards N: then the index is the task's ID."
        )
    return index, size


# The index and the number of shards of an array, as each engine says them.
_ENGINES: Final[Mapping[str, Callable[[Mapping[str, str], int], tuple[int, int]]]] = {
    KUBERNETES: _of_kubernetes,
    BATCH: _of_batch,
    SLURM: _of_slurm,
}
