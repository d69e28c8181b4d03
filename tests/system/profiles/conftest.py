"""Makes the modules of the suite of profiles importable, and those of benchmarks/detection."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
for folder in (HERE, HERE.parents[2] / "benchmarks" / "detection"):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

collect_ignore_glob = ["[!t]*.py"]
