"""Recoveries: when conditions that were met no longer hold, by tensor and worker."""

from collections.abc import Collection, Mapping

from builtin_rules.statistics.tensor_selection import TensorKey
from smdebug.rules import Rule


class Recoveries:
    """Says that a condition has recovered after `rows` in a row in which it was clearly not met.

    Attributes
    ----------
    clear_rows
        The number of such rows of each condition that was met.
    """

    def __init__(self, rule: Rule, rows: int) -> None:
        self.clear_rows: dict[TensorKey, int] = {}
        self._rule = rule
        self._rows = rows

    def add(
        self, step: int, met: Collection[TensorKey], is_clear: Mapping[TensorKey, bool]
    ) -> None:
        """Record for which tensors the condition is met at a step, and for which it is clearly not.

        Tensors that are in neither were not judged at the step.
        """
        self.clear_rows |= dict.fromkeys(met, 0)
        for key in self.clear_rows.keys() & is_clear.keys():
            self.clear_rows[key] = self.clear_rows[key] + 1 if is_clear[key] else 0
            if self.clear_rows[key] == self._rows:
                del self.clear_rows[key]
                self._rule.found(step, *key, recovers=True)
