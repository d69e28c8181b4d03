"""SARIF on many trials: one run with the findings of all."""

from collections.abc import Iterator

from rule_runner.batch.collecting.results import CollectedTrial
from rule_runner.batch.collecting.streams import CollectedFile, Spool
from rule_runner.errors import EXIT_ISSUES
from rule_runner.escape import printable
from rule_runner.loading.loader import every_builtin, load_builtin
from rule_runner.report.sarif import (
    SCHEMA,
    Json,
    descriptor_of,
    message,
    notifications_of,
    results_of,
)
from rule_runner.results.json_text import dump_json
from rule_runner.results.versions import versions


class SarifFile(CollectedFile):
    """A SARIF log; results that are missing or not final are notifications of the tool."""

    def __init__(self, place: str) -> None:
        super().__init__(place)
        self._notifications = Spool()
        self._rules: dict[str, int] = {}

    def add(self, trial: CollectedTrial) -> None:
        """Add the findings of a trial."""
        evaluation = trial.as_evaluation()
        for rule in trial.rules:
            place = self._rules.setdefault(rule.rule, len(self._rules))
            ref: Json = {"id": printable(rule.rule), "index": place}
            for entry in results_of(evaluation, rule, ref):
                self.spool.append_item(dump_json(entry))
            for entry in notifications_of(rule, ref):
                self._notify(trial, entry)
        for problem in trial.problems:
            self._notify(trial, {"level": "error", "message": message(problem)})

    def _notify(self, trial: CollectedTrial, entry: Json) -> None:
        entry = entry | {"properties": entry.get("properties", {}) | {"trial": trial.trial}}
        self._notifications.append_item(dump_json(entry))

    def close(self) -> None:
        """Free the space on disk that was used meanwhile."""
        super().close()
        self._notifications.close()

    def pieces(self, exit_code: int) -> Iterator[bytes]:
        """Yield the log: the parts that grow with the trials come from spools."""
        driver = {
            "name": "rule-runner",
            "version": versions()["rule-runner"],
            "rules": [_descriptor(name) for name in self._rules],
        }
        yield f'{{"$schema":{dump_json(SCHEMA)},"version":"2.1.0","runs":[{{'.encode()
        yield f'"tool":{dump_json({"driver": driver})},\n"results":[\n'.encode()
        yield from self.spool.pieces()
        successful = dump_json(exit_code in {0, EXIT_ISSUES})
        yield f'],\n"invocations":[{{"executionSuccessful":{successful},'.encode()
        yield f'"exitCode":{exit_code},"toolExecutionNotifications":[\n'.encode()
        yield from self._notifications.pieces()
        yield b"]}]}]}\n"


def _descriptor(name: str) -> Json:
    """Return the description of a rule; a custom one has only its name."""
    plain: Json = {"id": printable(name)}
    return descriptor_of(load_builtin(name)) if name in every_builtin() else plain
