"""Cases in Python, where values are easier to compute than to write."""

import numpy as np

active = np.maximum(np.random.default_rng(0).normal(size=(200, 8)), 0)
dead = active * (np.arange(8) < 2)

RULE = "DeadRelu"
COLLECTIONS = {"relu_output": "^relu"}
CASES = [
    {
        "name": "half of the outputs are zero, of each unit",
        "tensors": {"relu_output_0": [active, active]},
        "expect": {"status": "NoIssuesFound", "judged": 2},
    },
    {
        "name": "six of eight units die",
        "tensors": {"relu_output_0": [active, dead]},
        "expect": {"step": 1, "tensors": ["relu_output_0"]},
    },
    {
        "name": "a higher limit",
        "parameters": {"threshold_layer": 80},
        "tensors": {"relu_output_0": [active, dead]},
        "expect": "NoIssuesFound",
    },
]
