"""Trials whose steps were saved at given times."""

import json
import struct
from collections.abc import Mapping, Sequence

import numpy as np
import rawtrial

BEGAN = 1.6e9  # the time in every record of `rawtrial`
_BEGAN = struct.pack("<d", BEGAN)
Times = Mapping[int, float | None]


def step_files(step: int, worker: str, time: float | None) -> dict[str, bytes]:
    """Return the files of one step, saved so many seconds after `BEGAN`; of None shapes only."""
    content = rawtrial.step_files(step, {"loss": np.ones(1)}, worker=worker)
    if time is not None:
        key = rawtrial.event_key(step, worker)
        return content | {key: content[key].replace(_BEGAN, struct.pack("<d", BEGAN + time))}
    key = rawtrial.index_key(step, worker)
    shape = {"tensorname": "loss", "originalname": "loss", "shape": [1]}
    index = {"meta": json.loads(content[key])["meta"], "shape_payload": [shape]}
    return {key: json.dumps(index).encode()}


def files(times: Sequence[Times]) -> dict[str, bytes]:
    """Return the files of a trial: for each worker the times of its steps."""
    content: dict[str, bytes] = {}
    for rank, steps in enumerate(times):
        worker = f"worker_{rank}"
        content[rawtrial.collections_key(worker)] = rawtrial.collections({}, len(times))
        for step, time in steps.items():
            content |= step_files(step, worker, time)
    return content
