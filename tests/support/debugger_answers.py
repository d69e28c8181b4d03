"""What calls of a configuration package answer: asked here and, as a script, by the SDK's Python.

    python tests/support/debugger_answers.py sagemaker.debugger < calls.json > answers.json

With ``--short`` the answers are those that tests/data/sdk_answers.json records.
"""

import importlib
import inspect
import json
import sys
from collections.abc import Iterable
from typing import Any

Answer = dict[str, Any]


def parameters(function: Any) -> list[tuple[str, str]]:
    """Return the names and defaults of what a function or class takes, without its types."""
    found = inspect.signature(function).parameters.values()
    return [(str(one.replace(annotation=one.empty)), str(one.kind.name)) for one in found]


def offered(module: Any) -> list[str]:
    """Return the classes and functions that a module offers."""
    return sorted(
        name
        for name, value in vars(module).items()
        if name[0] != "_" and (inspect.isclass(value) or inspect.isfunction(value))
    )


def prepared(rule: Any, job: Any = "job-1") -> Any:
    """Return the request of a debugging rule of a training job."""
    rule.prepare_actions(job)
    return rule.to_debugger_rule_config_dict()


def answers(package: str, calls: Iterable[str]) -> dict[str, Answer]:
    """Return what expressions answer with the names of a package: a value or an error."""
    module = importlib.import_module(package)
    metrics = importlib.import_module(f"{package}.metrics_config")
    names = {"module": module, "metrics_config": metrics, **vars(metrics), **vars(module)}
    helpers = {"parameters": parameters, "offered": offered, "prepared": prepared}
    return {call: _answer(call, names | helpers) for call in calls}


def short(answer: Answer) -> str:
    """Return the value of an answer, or the class of its error."""
    return str(answer["value"]) if "value" in answer else f"raises {answer['errors'][0]}"


def _answer(call: str, names: dict[str, Any]) -> Answer:
    try:
        return {"value": repr(eval(call, names))}  # noqa: S307 - calls of the tests
    except Exception as err:  # noqa: BLE001 - errors are answers
        kinds = [kind.__name__ for kind in type(err).__mro__]
        return {"errors": kinds[: kinds.index("BaseException")], "message": str(err)}


if __name__ == "__main__":
    found: dict[str, Any] = answers(sys.argv[1], json.load(sys.stdin))
    if "--short" in sys.argv:
        found = {call: short(answer) for call, answer in found.items()}
    json.dump(found, sys.stdout, indent=0)
