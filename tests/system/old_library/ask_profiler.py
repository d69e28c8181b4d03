"""Print what smdebug 1.0.34 answers about profiler data, as JSON; run by the Python that has it."""

import json
import os
import sys
from pathlib import Path

os.environ["SMDEBUG_LOG_LEVEL"] = "off"
sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

from profiler_answers import answers

if __name__ == "__main__":
    print(json.dumps(answers(json.loads(sys.argv[1]))))
