"""Print the help of the command line in this process, and report what was imported for it."""

import sys

from bench_child import Watch

HEAVY = {"boto3", "botocore", "docker", "jinja2", "matplotlib", "numpy", "pandas", "torch"}

if __name__ == "__main__":
    watch = Watch()
    from rule_runner.cli import main

    sys.argv = ["rule-runner", "--help"]
    try:
        main()
    except SystemExit:
        watch.report(0, heavy=sorted(HEAVY & sys.modules.keys()))
