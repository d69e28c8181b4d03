#!/usr/bin/env python3
"""Writes what Holistic Trace Analysis says of the generated traces into a table of the tests.

It is for comparison only, and no dependency. Its Python needs `HolisticTraceAnalysis==0.5.0` and
`pandas<3`:

    python3 -m venv /tmp/hta && /tmp/hta/bin/pip install HolisticTraceAnalysis==0.5.0 'pandas<3'
    .venv/bin/python benchmarks/detection/hta_numbers.py /tmp/hta/bin/python
"""

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "tests" / "system" / "profiles"
FOLDERS = (ROOT, PROFILES, ROOT / "tests" / "support")
sys.path[:0] = [str(folder) for folder in FOLDERS]


def main() -> None:
    """Write the table."""
    from comparing_hta import hta_numbers, traced_jobs, write_table, write_traces

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("python", help="the Python that has Holistic Trace Analysis")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folders = write_traces(Path(temporary), traced_jobs())
        write_table(hta_numbers(args.python, folders))


if __name__ == "__main__":
    main()
