"""ModeKeys: the phase of the training job that a step belongs to."""

import enum


class ModeKeys(enum.Enum):
    """The mode of a step; in queries `GLOBAL` means any mode.

    Event files store the numbers. The steps of a training job that never sets a mode are saved as
    `GLOBAL`.
    """

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4

    __hash__ = object.__hash__  # members are compared by identity; that of Enum is slower


modes = ModeKeys  # the documented name of the class in smdebug
