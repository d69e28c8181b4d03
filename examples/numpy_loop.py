"""Fit a line by gradient descent in plain numpy, and save each step to a folder."""

import sys

import numpy as np

from smdebug import modes
from smdebug.core.writer import TrialWriter

rng = np.random.default_rng(0)
x = rng.normal(size=(200, 3))
y = x @ [1.0, -2.0, 3.0] + rng.normal(scale=0.1, size=200)
weight = np.zeros(3)
patterns = {"losses": "loss", "weights": "^weight", "gradients": "^gradient"}

with TrialWriter(sys.argv[1], collections=patterns) as writer:
    for step in range(40):
        error = x @ weight - y
        gradient = x.T @ error / len(y)
        tensors = {"loss": np.mean(error**2), "weight": weight, "gradient/weight": gradient}
        writer.step(step, tensors, mode=modes.TRAIN)
        weight -= 0.1 * gradient
