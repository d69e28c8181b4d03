"""Does on one executor what all of them promise, and prints it as JSON.

python executor_contract.py SPEC FOLDER
"""

import json
import sys
from pathlib import Path
from typing import Any

import fleets
from executed_calls import doubled, lose_worker, raise_key_error, stoppable

from rule_runner.executors import open_executor


class StopError(Exception):
    """Ends the block of an executor."""


def contract(spec: str, folder: Path) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    with open_executor(spec) as executor:
        answers["results"] = [*executor.map(doubled, range(4))]
        poison = executor.submit(lose_worker, folder / "poison", 99)
        survivor = executor.submit(lose_worker, folder / "survivor", 2)
        others = [executor.submit(doubled, number) for number in range(4)]
        answers["others"] = [future.result() for future in others]
        answers["poison"] = type(poison.exception()).__name__
        answers["poison_attempts"] = len((folder / "poison").read_text().splitlines())
        answers["survives"] = survivor.result() >= 2
        error = executor.submit(raise_key_error, "conv1").exception()
        answers["error"] = isinstance(error, KeyError)
        started, ended = folder / "started", folder / "ended"
        executor.submit(stoppable, started, ended)
        fleets.wait_until(started.exists)
        executor.stop()
        fleets.wait_until(lambda: ended.exists() and ended.read_text())
        answers["stopped"] = ended.read_text()
    return answers


if __name__ == "__main__":
    print(json.dumps(contract(sys.argv[1], Path(sys.argv[2]))))
