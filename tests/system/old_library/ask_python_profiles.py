"""Answer questions about Python profiles with smdebug 1.0.34; run by the Python that has it.

Takes a JSON list of arguments and prints the answers, behind what the library prints.
"""

import contextlib
import json
import os
import sys
from pathlib import Path

os.environ["SMDEBUG_LOG_LEVEL"] = "off"
sys.path.insert(0, str(Path(__file__).parents[2] / "support"))

with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stdout(nowhere):
    from python_profile_answers import answers

    found = answers(*json.loads(sys.argv[1]))

print(json.dumps(found))
