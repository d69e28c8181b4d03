"""Runs the command line: ``python -m rule_runner``."""

from rule_runner.cli import main

if __name__ == "__main__":
    main()
