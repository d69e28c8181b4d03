"""Makes the modules of benchmarks/detection importable."""

import sys
from pathlib import Path

DETECTION = str(Path(__file__).parents[3] / "benchmarks" / "detection")
if DETECTION not in sys.path:
    sys.path.append(DETECTION)
