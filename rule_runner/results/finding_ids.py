"""Finding IDs: identify the same finding across restarts of an evaluation."""

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rule_runner.results.schema import Evidence


class FindingIds:
    """Gives the findings of one rule job their IDs, the same ones whenever it is judged again.

    Parameters
    ----------
    fingerprint
        `rule_runner.results.schema.fingerprint` of the rule job.
    run_id
        Unique ID of the evaluation; "" gives the same finding the same ID in every evaluation.
    """

    def __init__(self, fingerprint: str, run_id: str = "") -> None:
        self._fingerprint = fingerprint
        self._run_id = run_id
        self._step: int | None = None
        self._ordinals: Counter[tuple[str | None, str | None]] = Counter()
        self._late: Counter[tuple[int, str | None, str | None]] = Counter()

    def next(self, evidence: "Evidence") -> str:
        """Return the ID of the next finding.

        Findings come in ascending order of their steps, except for a few of earlier steps, such as
        those that a rule reports at the end of the data.
        """
        step = evidence.global_step
        series = (evidence.tensor, evidence.worker)
        ordinal: int | str
        if self._step is not None and step < self._step:
            self._late[step, *series] += 1
            ordinal = f"late {self._late[step, *series]}"
        else:
            if step != self._step:
                self._step = step
                self._ordinals.clear()
            self._ordinals[series] += 1
            ordinal = self._ordinals[series]
        parts = [self._fingerprint, self._run_id, step, *series, ordinal]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
