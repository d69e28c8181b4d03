"""Writes a trial whose gradients vanish, for tests of those who have it judged."""

from pathlib import Path

import numpy as np

from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter


def write_trial(path: Path) -> Path:
    """Write an ended trial: losses 1, 1/11 ... at steps 0, 10 ... 90; gradients vanish at 70."""
    with TrialWriter(path, collections={"gradients": "^gradient", "losses": "loss"}) as writer:
        for step in range(0, 100, 10):
            gradient = np.full((4, 3), 10.0 ** (-step / 10 - 0.5), np.float32)
            tensors = {"gradient/fc.weight": gradient, "loss": np.float32(1.0 / (step + 1))}
            writer.step(step, tensors, mode=ModeKeys.TRAIN)
    return path
