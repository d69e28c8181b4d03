"""Answer questions about trials with smdebug 1.0.34; run by the Python that has it.

Reads a JSON list of ``{"path", "queries"}`` and prints the list of their lists of answers.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["SMDEBUG_LOG_LEVEL"] = "off"
os.environ["SMDEBUG_TRAINING_END_DELAY_REFRESH"] = "0"
sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

import answers

from smdebug.core.modes import ModeKeys
from smdebug.trials import create_trial


def main(asked: list[dict[str, Any]]) -> list[list[Any]]:
    """Return the answers to the questions about each trial."""
    modes = dict(ModeKeys.__members__)
    found = []
    for one in asked:
        trial = create_trial(one["path"])
        found.append([answers.ask(trial, query, modes, 2.0) for query in one["queries"]])
    return found


if __name__ == "__main__":
    print(json.dumps(main(json.load(sys.stdin))))
