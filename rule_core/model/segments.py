"""Segments: the parts of a run between restarts, in which steps only grow.

A run that is resumed from a checkpoint repeats steps. Each time the steps go back, a new segment
begins. The global step of a later segment contains the segment's number in its high bits, so that
global steps always grow; those of the first segment, and of trials that hooks write, are the steps
of the training itself.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Final

SEGMENT_STEPS: Final = 1 << 48  # steps of a training are smaller
MAX_SEGMENTS: Final = 1 << 14
SEGMENTS_SHOWN: Final = 10


def global_step(segment: int, step: int) -> int:
    """Return the global step of a step of a segment; the first segment is 0.

    >>> global_step(0, 120), global_step(1, 120) - global_step(1, 0)
    (120, 120)
    """
    return segment * SEGMENT_STEPS + step


def segment_of(step: int) -> int:
    """Return the segment of a global step.

    >>> segment_of(120), segment_of(global_step(3, 120))
    (0, 3)
    """
    return step // SEGMENT_STEPS


def step_in_segment(step: int) -> int:
    """Return the step of the training that a global step stands for.

    >>> step_in_segment(120), step_in_segment(global_step(3, 120))
    (120, 120)
    """
    return step % SEGMENT_STEPS


def numbers_of(step: int) -> tuple[int, int]:
    """Return the segment of a global step and the step of the training itself.

    A number that is no global step, because it is negative, is of the first segment.

    >>> numbers_of(120), numbers_of(global_step(3, 120)), numbers_of(-1)
    ((0, 120), (3, 120), (0, -1))
    """
    return divmod(step, SEGMENT_STEPS) if step >= 0 else (0, step)


def first_of_segment(step: int) -> int:
    """Return the smallest global step in the segment of a global step."""
    return step - step % SEGMENT_STEPS


def resumed_at(step: int, segments: Sequence[int]) -> int | None:
    """Return where the run was resumed that repeated a global step; None if it was not repeated.

    Parameters
    ----------
    segments
        The first global step of each segment, ascending.

    >>> resumed_at(480, [0, global_step(1, 400)]) == global_step(1, 400)
    True
    >>> resumed_at(380, [0, global_step(1, 400)])
    """
    own = step_in_segment(step)
    later = segments[bisect_right(segments, step) :]
    return next((first for first in later if step_in_segment(first) <= own), None)


def step_text(step: int) -> str:
    """Return a global step for users, who count segments from 1.

    >>> step_text(120), step_text(global_step(1, 120))
    ('120', '120 of segment 2')
    """
    segment, own = numbers_of(step)
    return f"{own} of segment {segment + 1}" if segment else str(step)


def segments_of(steps: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and the last global step of each segment of ascending global steps.

    >>> segments_of([3, 4, 5, global_step(1, 4)]) == [(3, 5), (global_step(1, 4),) * 2]
    True
    """
    segments = []
    position = 0
    while position < len(steps):
        first = steps[position]
        position = bisect_left(steps, first_of_segment(first) + SEGMENT_STEPS, position)
        segments.append((first, steps[position - 1]))
    return segments


def steps_text(steps: Sequence[int]) -> str:
    """Return the range of ascending global steps for users; that of each segment if several.

    >>> steps_text([3, 4, 5]), steps_text([3, 4, global_step(1, 2), global_step(1, 6)])
    ('3 to 5', '2 segments: 3 to 4, 2 to 6')
    """
    return ranges_text(
        [(step_in_segment(first), step_in_segment(last)) for first, last in segments_of(steps)]
    )


def ranges_text(ranges: Sequence[tuple[int, int]]) -> str:
    """Return the first and the last step of each segment for users; long lists are cut.

    >>> ranges_text([(0, 500), (400, 900)])
    '2 segments: 0 to 500, 400 to 900'
    """
    texts = [f"{first} to {last}" for first, last in ranges]
    if len(texts) > SEGMENTS_SHOWN:
        texts[SEGMENTS_SHOWN - 2 : -1] = ["..."]
    return f"{len(ranges)} segments: {', '.join(texts)}" if len(ranges) > 1 else "".join(texts)
