#!/usr/bin/env python3
"""Runs healthy fine-tunings under `rule-runner train`, and prints what rules say of them.

    python benchmarks/detection/fine_tuning [--only NAME ...] [--processes N]

Run it with a Python that has PyTorch and what README.md lists. What trainers log is judged by
`rule-runner check` too. The exit code is 0 if no new rule accuses a script, and none fails.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from scripts import SCRIPTS

ROOT: Final = Path(__file__).resolve().parents[3]
# The newest rules, which a healthy script must not meet.
NEWEST: Final = (
    "BroadcastTargets",
    "GradientNormZero",
    "MaskedOrShiftedLabels",
    "MetricNotImproving",
    "NoLearningSignal",
    "ParametersWithoutOptimizer",
    "PolicyDrift",
    "ThroughputDrop",
)


class Told(NamedTuple):
    """What the rules told of a script: those that judged it, and what they found."""

    script: str
    code: int
    judged: frozenset[str]
    findings: tuple[tuple[str, str], ...]  # rule, and its first finding


def run(name: str) -> Told:
    """Run a script in a folder of its own, and judge what it saves and logs."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        script = [sys.executable, str(Path(__file__).with_name("scripts.py")), name]
        code = call(folder, "train", "--no-report", "--output", "trained", "--", *script)
        logs = folder / "logs"
        if logs.is_dir():
            then = time.time() - 7 * 86400  # as long ago as that a run counts as ended
            for path in [*logs.rglob("*"), logs]:
                os.utime(path, (then, then))
            call(folder, "check", "logs", "--no-report", "--output", "checked")
        rules = [rule for path in folder.rglob("results.json") for rule in rules_of(path)]
        judged = frozenset(rule["rule"] for rule in rules if rule["outcome"] != "NotEvaluated")
        found = ((rule["rule"], first(rule)) for rule in rules if rule["outcome"] == "IssuesFound")
        return Told(name, code, judged, tuple(sorted(set(found))))


def call(folder: Path, *command: str) -> int:
    """Call rule-runner in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    called = [sys.executable, "-m", "rule_runner", *command]
    done = subprocess.run(
        called, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(done.stderr[-2000:], file=sys.stderr)
    return done.returncode


def rules_of(path: Path) -> list[dict[str, object]]:
    """Return the results of the rules in a file of results."""
    content = json.loads(path.read_text("utf-8"))
    trials = content.get("trials") or [content]
    return [rule for trial in trials for rule in (trial.get("evaluation") or trial)["rules"]]


def first(rule: dict[str, object]) -> str:
    """Return the first finding of a rule in one line."""
    for finding in rule["evidence"]:
        if finding.get("severity") != "note":
            return f"{finding.get('step')} {finding.get('tensor')}: {finding.get('note')}"
    return str(rule.get("status_details"))


def main() -> int:
    """Run the scripts that the command line names, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=SCRIPTS, default=[*SCRIPTS])
    parser.add_argument("--processes", type=int, default=2, help="how many at a time (2)")
    args = parser.parse_args()
    judged, accused, failed = Counter[str](), Counter[str](), 0
    with ThreadPoolExecutor(args.processes) as pool:
        for told in pool.map(run, args.only):
            failed += bool(told.code)
            judged.update(told.judged)
            accused.update({rule for rule, _ in told.findings})
            findings = "; ".join(f"{rule} {text}" for rule, text in told.findings) or "nothing"
            state = f"exit code {told.code}" if told.code else findings
            print(f"{told.script:32}{len(told.judged):3} rules: {state}", flush=True)
    print(f"\n{len(args.only)} scripts, {failed} failed")
    for rule in [*NEWEST, *sorted(accused.keys() - NEWEST)]:
        print(f"{rule:32}{accused[rule]:3} accused of {judged[rule]:3} judged")
    return int(failed or any(accused[rule] for rule in NEWEST))


if __name__ == "__main__":
    sys.exit(main())
