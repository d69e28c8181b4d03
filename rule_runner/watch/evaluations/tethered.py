"""Runs rule-runner, and ends it as soon as its standard input ends.

The other end of standard input belongs to the worker of a cluster. If that is killed, nothing else
would end the evaluation that it has started.

    python -m rule_runner.watch.evaluations.tethered ARGUMENT...
"""

import os
import runpy
from threading import Thread


def _end_with_input() -> None:
    while os.read(0, 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    Thread(target=_end_with_input, name="tether", daemon=True).start()
    runpy.run_module("rule_runner", run_name="__main__", alter_sys=True)
