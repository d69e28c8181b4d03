"""A small trial whose step 1 is there to be damaged."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import rawtrial
from clocks import PatientClock

from smdebug.trials import Trial, create_trial

EVENT, INDEX = rawtrial.event_key(1), rawtrial.index_key(1)
COLLECTIONS = rawtrial.collections_key()
GOOD = np.arange(6, dtype=np.float32).reshape(2, 3)
RECORD = rawtrial.record(rawtrial.event(rawtrial.array_message(GOOD)))
Files = dict[str, bytes]


def good_files() -> Files:
    """Return an ended trial of steps 0 and 1, each with tensor ``t``."""
    files = rawtrial.step_files(0, {"t": GOOD}) | rawtrial.step_files(1, {"t": GOOD, "u": GOOD})
    files[COLLECTIONS] = rawtrial.collections({"losses": ["loss"]})
    return files | {rawtrial.TRAINING_JOB_END: b""}


def make(folder: Path) -> Path:
    """Write the trial, and files outside it that nobody may read."""
    rawtrial.write(folder, {"outside": RECORD, "outside.json": good_files()[INDEX]})
    return rawtrial.write(folder / "trial", good_files())


def opened(root: Path) -> Trial:
    """Open the trial without any waiting."""
    return create_trial(root, timeout=1, clock=PatientClock())


def index(**changes: Any) -> bytes:
    """Return the index file of step 1 with some of its keys changed."""
    document = json.loads(good_files()[INDEX])
    for key, value in changes.items():
        if key in {"mode", "mode_step", "event_file_name"}:
            document["meta"][key] = value
        elif key in {"tensor_payload", "shape_payload", "meta"}:
            document[key] = value
        else:
            document["tensor_payload"][0][key] = value
    return json.dumps(document).encode()


def event(
    number: int, sizes: list[int], content: bytes | None, strings: tuple[bytes, ...] = ()
) -> bytes:
    """Return an Event with a tensor of the given fields."""
    return rawtrial.event(rawtrial.tensor_message(number, sizes, content, strings))


def check_step_0(trial: Trial) -> None:
    """Show that the step beside is as it was."""
    assert trial.tensor("t").value(0).tolist() == GOOD.tolist()
