"""The results that an evaluation saved, as JSON, read without the package."""

import json
from pathlib import Path
from typing import Any


def document(output: Path) -> dict[str, Any]:
    """Return the content of ``results.json``."""
    found: dict[str, Any] = json.loads((output / "results.json").read_text("utf-8"))
    return found


def results(output: Path) -> dict[str, dict[str, Any]]:
    """Return the results of the rule jobs, by name."""
    return {rule["configuration_name"]: rule for rule in document(output)["rules"]}


def result(output: Path, name: str | None = None) -> dict[str, Any]:
    """Return the result of a rule job, by default the only one."""
    found = results(output)
    if name is None:
        ((name, _),) = found.items()
    return found[name]
