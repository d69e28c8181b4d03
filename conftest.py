"""Keeps pytest from importing packages whose frameworks are not installed."""

from importlib.util import find_spec
from typing import Final

FRAMEWORKS: Final = {
    "keras": "keras",
    "lightning": "lightning",
    "pytorch": "torch",
    "tensorflow": "keras",
    "transformers": "transformers",
    "xgboost": "xgboost",
}
collect_ignore = [
    f"{folder}/{package}"
    for package, module in FRAMEWORKS.items()
    if find_spec(module) is None
    for folder in ("rule_core/frameworks", "smdebug")
]
collect_ignore += [
    f"rule_runner/executors/{module}_executor.py"
    for module in ("dask", "ray")
    if find_spec(module) is None
]
if find_spec("tensorflow") is None:
    collect_ignore.append("rule_core/frameworks/keras/tensorflow_gradients.py")
collect_ignore.append("tests/support")  # what tests import; it holds none
