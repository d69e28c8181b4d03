"""Makes the modules of the detection suite importable, and keeps them from being collected."""

import sys
from pathlib import Path

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.append(HERE)

collect_ignore_glob = ["[!t]*.py", "t[!e]*.py"]
