"""Finding ids: what tells one finding from another, whoever counts them again."""

import hashlib
import json
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rule_runner.results import Evidence


class FindingIds:
    """Gives the findings of one rule job their ids: the same ones whenever it is walked again.

    Parameters
    ----------
    fingerprint
        `rule_runner.results.fingerprint` of the rule job.
    """

    def __init__(self, fingerprint: str) -> None:
        self._fingerprint = fingerprint
        self._step: int | None = None
        self._ordinals: Counter[tuple[str | None, str | None]] = Counter()

    def next(self, evidence: "Evidence") -> str:
        """Return the id of the next finding; they come in ascending order of their steps."""
        if evidence.step != self._step:
            self._step = evidence.step
            self._ordinals.clear()
        where = (evidence.tensor, evidence.worker)
        self._ordinals[where] += 1
        parts = [self._fingerprint, evidence.step, *where, self._ordinals[where]]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]
