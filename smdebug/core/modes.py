"""ModeKeys: which phase of the training job a step belongs to."""

import enum


class ModeKeys(enum.Enum):
    """Mode of a step; `GLOBAL` in a question means any mode.

    The numbers are those that event files hold. A training job that never set a mode
    stores its steps as `GLOBAL`.
    """

    TRAIN = 1
    EVAL = 2
    PREDICT = 3
    GLOBAL = 4
