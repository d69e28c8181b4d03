"""Print what smdebug 1.0.34 reads of a trial, as JSON; run by the Python that has it."""

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["SMDEBUG_LOG_LEVEL"] = "off"
os.environ["SMDEBUG_TRAINING_END_DELAY_REFRESH"] = "0"
sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from trial_content import content

from smdebug.core.modes import ModeKeys
from smdebug.trials import create_trial


def main(path: str, *modes: str) -> Any:
    """Return all that the trial at `path` holds, in some modes or in all."""
    return content(
        create_trial(path), {name: ModeKeys[name] for name in modes or ModeKeys.__members__}
    )


if __name__ == "__main__":
    print(json.dumps(main(*sys.argv[1:])))
