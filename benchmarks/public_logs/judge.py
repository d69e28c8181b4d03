"""Judge labelled runs of strangers with the default rules, from copies or from clones.

`held_out_runs.csv` has the origin of each run and two labels, which were given from plots. The
files themselves belong to others. ``--mirrors`` takes a folder with a clone of each repository,
``OWNER+NAME`` or ``OWNER/NAME``, bare or not, and names the origins that are missing. ``--runs``
takes a folder with the files of each run in ``CASE/run``, at any depth.
"""

import argparse
import csv
import json
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

Row = Mapping[str, str]
FITTING: Final[Mapping[str, set[str]]] = {
    "nan": {"ExplodingTensor", "LossNotDecreasing"},
    "diverged": {"LossNotDecreasing", "LossSpike", "Overfit", "PolicyDrift"},
    "never_learned": {
        "LossNotDecreasing",
        "MetricNotImproving",
        "NoLearningSignal",
        "RewardNotIncreasing",
        "UnchangedTensor",
        "VanishingGradient",
        "LearningRate",
    },
    "overfit": {"Overfit", "Overtraining"},
    "plateau_too_early": {
        "LossNotDecreasing",
        "MetricNotImproving",
        "RewardNotIncreasing",
        "LearningRate",
        "Overtraining",
    },
    "spikes": {"LossSpike", "GradientNormSpike"},
    "rate_too_large": {"LossNotDecreasing", "LossSpike", "LearningRate"},
    "frozen": {"LossNotDecreasing", "RewardNotIncreasing", "UnchangedTensor", "LearningRate"},
}  # for other faults, each finding fits


class Verdict(NamedTuple):
    """What was found in a run: the step of the first finding of each rule, and all steps."""

    rules: Mapping[str, int | None]
    roots: Sequence[str]  # the rule that is the root cause of each incident
    first: int
    last: int


def main() -> int:
    """Judge all runs on which both labels agree, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--runs", type=Path)
    source.add_argument("--mirrors", type=Path)
    parser.add_argument("--rule-runner", default=str(Path(sys.executable).parent / "rule-runner"))
    parser.add_argument(
        "--set", choices=["first", "second", "third", "fourth"], help="only the runs of this set"
    )
    parser.add_argument("--csv", type=Path, help="write the verdict on each run to this file")
    options = parser.parse_args()
    table = Path(__file__).parent / "held_out_runs.csv"
    rows = [
        row
        for row in csv.DictReader(table.open())
        if row["label"] == row["second_label"] and options.set in {None, row["set"]}
    ]
    places = (
        {path.parent.name: path for path in options.runs.glob("**/run")} if options.runs else {}
    )
    missing, judged = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for row in rows:
            folder = Path(scratch) / row["case"]
            if options.runs:
                run = places.get(row["case"])
            else:
                run = extracted(row, options.mirrors, folder / "run")
            if run is None:
                missing.append(row)
                continue
            judged.append((row, judge(options.rule_runner, run, folder / "results")))
    for row in missing:
        print(f"missing: {row['repository']} {row['path']} @{row['commit']}")
    report(judged)
    if options.csv:
        write(options.csv, judged)
    return 1 if missing else 0


def extracted(row: Row, mirrors: Path, folder: Path) -> Path | None:
    """Write the file of a run from a clone to a folder, below the folder that it was in."""
    owner, _, name = row["repository"].partition("/")
    for clone in (mirrors / f"{owner}+{name}", mirrors / owner / name):
        if clone.is_dir():
            blob = f"{row['commit']}:{row['path']}"
            command = ["git", "-C", str(clone), "cat-file", "blob", blob]
            answer = subprocess.run(command, capture_output=True, check=False)
            if answer.returncode == 0:
                path = folder / Path(*Path(row["path"]).parts[-2:])
                path.parent.mkdir(parents=True)
                path.write_bytes(answer.stdout)
                return folder
    return None


def judge(rule_runner: str, run: Path, results: Path) -> Verdict | None:
    """Return what `check` finds in a run with errors and warnings; None if it reads nothing."""
    command = [rule_runner, "check", str(run), "--output", str(results), "--format", "json"]
    answer = subprocess.run(command, capture_output=True, check=False)
    trials = json.loads(answer.stdout or b"{}").get("trials", ())
    evaluations = [trial["evaluation"] for trial in trials if trial.get("evaluation")]
    if not evaluations:
        return None
    rules = {
        rule["rule"]: rule["step"]
        for evaluation in evaluations
        for rule in evaluation["rules"]
        if rule["outcome"] == "IssuesFound" and rule["severity"] in {"error", "warning"}
        if rule.get("state") != "recovered"
    }
    roots = [
        rule["rule"]
        for evaluation in evaluations
        for incident in evaluation["incidents"]
        for rule in evaluation["rules"]
        if rule["configuration_name"] == incident["root"]
    ]
    ends = [evaluation["trial"] for evaluation in evaluations]
    first = min(end["first_step"] or 0 for end in ends)
    return Verdict(rules, roots, first, max(end["last_step"] or 0 for end in ends))


def names(row: Row, rules: Collection[str]) -> list[str]:
    """Return those of some rules that name the fault of a run."""
    faults = {row["fault"], row["second_fault"]}
    fitting: set[str] = set().union(*(FITTING.get(fault, set(rules)) for fault in faults))
    return sorted(fitting & set(rules))


def delays(judged: Sequence[tuple[Row, Verdict | None]]) -> Iterator[float]:
    """Yield how late each fault was named, as a share of its run."""
    for row, verdict in judged:
        if verdict is not None and row["from_step"].isdecimal() and verdict.last > verdict.first:
            steps = [verdict.rules[rule] for rule in names(row, verdict.rules)]
            known = [step for step in steps if step is not None]
            if known and verdict.first <= int(row["from_step"]) <= verdict.last:
                yield (min(known) - int(row["from_step"])) / (verdict.last - verdict.first)


def report(judged: Sequence[tuple[Row, Verdict | None]]) -> None:
    """Print the shares of runs that are read, accused and named."""
    for sure in (False, True):
        of = [pair for pair in judged if not (sure and pair[0]["doubt"])]
        healthy = [verdict for row, verdict in of if row["label"] == "healthy"]
        faulty = [(row, verdict) for row, verdict in of if row["label"] == "faulty"]
        read = [verdict for verdict in healthy if verdict is not None]
        accused = [verdict for verdict in read if verdict.rules]
        seen = [(row, verdict) for row, verdict in faulty if verdict is not None]
        named = [row for row, verdict in seen if names(row, verdict.rules)]
        found = [row for row, verdict in seen if verdict.rules]
        print("labels without a doubt:" if sure else "all labels:")
        print(f"  healthy: {len(read)} of {len(healthy)} read, {len(accused)} accused", end=" ")
        print(f"{dict(Counter(rule for verdict in accused for rule in verdict.rules))}")
        print(f"  faulty: {len(seen)} of {len(faulty)} read, {len(named)} named", end=" ")
        print(f"{dict(Counter(row['fault'] for row in named))}, {len(found)} with any finding")
        right = [row for row, verdict in seen if names(row, verdict.roots[:1])]
        single = [row for row, verdict in seen if len(verdict.roots) == 1]
        print(f"  of those: root cause right in {len(right)}, one incident in {len(single)}")
        late = sorted(delays(of))
        if late:
            print(f"  median delay: {statistics.median(late):.0%} of the run ({len(late)} faults)")


def write(path: Path, judged: Sequence[tuple[Row, Verdict | None]]) -> None:
    """Write the verdict on each run."""
    with path.open("w", newline="") as file:
        table: Any = csv.writer(file, lineterminator="\n")
        table.writerow(["case", "label", "fault", "read", "rules", "roots"])
        for row, verdict in judged:
            rules = "" if verdict is None else " ".join(sorted(verdict.rules))
            roots = "" if verdict is None else " ".join(verdict.roots)
            is_read = "no" if verdict is None else "yes"
            table.writerow([row["case"], row["label"], row["fault"], is_read, rules, roots])


if __name__ == "__main__":
    sys.exit(main())
