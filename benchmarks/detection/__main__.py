#!/usr/bin/env python3
"""Trains small real runs, healthy and faulty, has all rules judge them, and prints the scores.

Run it with a Python that has PyTorch, XGBoost, scikit-learn, Keras and transformers. Runs whose
trials `--runs` has are not trained again: use a new folder after a hook or a run was changed.
With `--profiles`, it records and generates profiles instead, and rules about profiles judge them.
"""

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROFILES = ROOT / "tests" / "system" / "profiles"
FOLDERS = (ROOT, PROFILES, ROOT / "tests" / "support")
sys.path[:0] = [str(folder) for folder in FOLDERS]
PAGE = ROOT / "docs" / "detection.md"


def main() -> None:
    """Do what the command line asks for."""
    from measuring import measure
    from tables import report, write_page
    from training_runs import PARTS, SAMPLE, all_runs, runs_of

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=[*PARTS, "all"], default="all", help="which runs (all)")
    parser.add_argument("--sample", action="store_true", help="only the sample that CI judges")
    parser.add_argument("--only", nargs="+", metavar="RUN", help="names of runs")
    parser.add_argument("--runs", type=Path, help="folder of the trials, kept from call to call")
    parser.add_argument("--processes", type=int, default=2, help="how many at a time (2)")
    parser.add_argument("--profiles", action="store_true", help="judge profiles, not trainings")
    parser.add_argument(
        "--markdown", action="store_true", help="write the page and the files of results"
    )
    args = parser.parse_args()
    if args.markdown and (args.only or args.sample or args.part != "all"):
        parser.error("--markdown needs all runs.")
    if args.profiles:
        if args.runs or args.part != "all":
            parser.error("--profiles has no --runs and no --part.")
        judge_profiles(parser, args)
        return
    runs = runs_of(args.part)
    if unknown := [name for name in args.only or () if name not in all_runs()]:
        parser.error(f"there is no run named {', '.join(unknown)}.")
    names = SAMPLE if args.sample else list(runs)
    with tempfile.TemporaryDirectory() as temporary:
        folder = args.runs or Path(temporary)
        measured = list(measure(folder, args.only or names, args.processes))
    print(report(all_runs(), measured))
    if args.markdown:
        write_page(PAGE, all_runs(), measured)


def judge_profiles(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    """Make and judge profiles, and print the scores."""
    import evaluating
    from judging_profiles import measure
    from profile_jobs import all_jobs, sample
    from profile_tables import report, write_page

    jobs = all_jobs()
    if unknown := [name for name in args.only or () if name not in jobs]:
        parser.error(f"there is no job named {', '.join(unknown)}.")
    names = sample(jobs) if args.sample else list(jobs)
    evaluating.log_nothing()
    with tempfile.TemporaryDirectory() as temporary:
        measured = list(measure(Path(temporary), args.only or names))
    print(report(jobs, measured))
    if args.markdown:
        write_page(PAGE, jobs, measured)


if __name__ == "__main__":
    main()
