"""An index with issues to alert about, for tests of alerts."""

from pathlib import Path
from typing import Any

from rule_core.severity import Severity
from rule_runner.index.database import NewTrial, WatchDatabase
from rule_runner.index.records import RuleRecord
from rule_runner.index.states import WatchState


class Index:
    """An index of trials, each with one rule per name."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "watch.sqlite"
        self.database = WatchDatabase(self.path)

    def close(self) -> None:
        self.database.close()

    def judge(self, name: str, *rules: RuleRecord, **fields: Any) -> int:
        """Record the verdicts of a trial; return its number."""
        path = f"/runs/{name}"
        output = str(self.path.parent / "out" / name)
        self.database.add([NewTrial(path, "/runs", True, False, output)], 1.0)
        trial = self.database.trial_at(path)
        assert trial is not None
        fields = {"state": WatchState.JUDGED, "outcome": "IssuesFound"} | fields
        self.database.update(trial.id, **fields)
        self.database.set_rules(trial.id, rules)
        return trial.id


def issue(name: str = "Loss", severity: str | None = "error", **fields: Any) -> RuleRecord:
    """Return a rule that found an issue, or none without a severity."""
    found = severity and Severity(severity)
    defaults: dict[str, Any] = {
        "name": name,
        "rule": name,
        "mode": "enforce",
        "outcome": "IssuesFound",
        "severity": found,
        "step": 130,
        "judged": 14,
        "findings": 1,
        "counted_severity": found,
    }
    return RuleRecord(**(defaults | fields))
