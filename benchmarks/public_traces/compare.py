"""Compares the time outside of steps with a computation from the JSON of public traces.

    .venv/bin/python benchmarks/public_traces/compare.py TRACE...

Prints, for each trace, the percentage by OverallFrameworkMetrics and by the JSON alone: the time
from the first start to the last end of an operator, annotation, runtime call, kernel or copy, less
the union of the steps.
"""

import gzip
import json
import math
import re
import sys
import tempfile
from pathlib import Path

from click.testing import CliRunner

from rule_runner.cli import main

CATEGORIES = {"cpu_op", "user_annotation", "cuda_runtime", "cuda_driver", "kernel"}
CATEGORIES |= {"gpu_memcpy", "gpu_memset", "Operator", "Kernel", "Memcpy", "Memset", "Runtime"}


def reported(path: Path) -> float | None:
    """Return the percentage in the report of the rule; None without steps or if refused."""
    with tempfile.TemporaryDirectory() as folder:
        rule = ("--rule", "OverallFrameworkMetrics", "--no-wait", "--output", f"{folder}/results")
        CliRunner().invoke(main, ["evaluate", "--profiler-trial", str(path), *rule])
        for report in Path(folder).rglob("OverallFrameworkMetrics.json"):
            phases = json.loads(report.read_text())["Details"]["phase"]
            return phases.get("others", 0.0) if phases else None
    return None


def computed(path: Path) -> float | None:
    """Return the percentage by the JSON; None without steps."""
    content = path.read_bytes()
    content = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    document = json.loads(content)
    events = document["traceEvents"] if isinstance(document, dict) else document
    used = [event for event in events if event.get("ph") == "X" and event.get("cat") in CATEGORIES]
    spans = [(event["ts"], event["ts"] + event["dur"], event["name"]) for event in used]
    steps = sorted(span for span in spans if re.fullmatch(r"ProfilerStep#\d+", span[2]))
    moments = [
        event["ts"]
        for event in events
        if event.get("name") == "[memory]" and "Total Allocated" in event.get("args", {})
    ]
    covered, end = 0.0, -math.inf
    for start, stop, _ in steps:
        covered += max(0.0, stop - max(start, end))
        end = max(end, stop)
    whole = max([*moments, *(span[1] for span in spans)]) - min([*moments, *(s[0] for s in spans)])
    return 100 * (1 - covered / whole) if steps else None


for name in sys.argv[1:]:
    sys.stdout.write(f"{name} {reported(Path(name))} {computed(Path(name))}\n")
