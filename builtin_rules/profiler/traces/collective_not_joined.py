"""CollectiveNotJoined: a rank did not join a collective that others wait in."""

from typing import Any, Final

from builtin_rules.profiler.statistics.parameters import SCAN_INTERVAL
from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.profiler.traces.process_groups import ProcessGroup, ProcessGroups
from builtin_rules.statistics.parameters import count
from smdebug.rules.extensions import FlightRecorderDumps, Quantity, Severity

BEHIND: Final = "behind"
MISMATCHED: Final = "mismatched"
NO_DUMP: Final = "no_dump"
GOES_ON: Final = "collectives go on after this window: the last one is judged, with all before it"
NO_COLLECTIVES: Final = "no collective and no process group in the dumps"


class CollectiveNotJoined(WindowRule):
    """Met when the ranks of a distributed training did not join the same collectives.

    Each rank counts the collectives of each process group. The condition is met if the count of a
    rank is more than `behind` collectives lower than that of another rank of the group, so that
    the others wait for it; if a collective of the same number has another operation, another number
    of elements or another type of data than on most ranks; or if a rank of a group left no dump. A
    rank whose recorder had no room for a group's last collective is not compared. Sends and
    receives are left out. Everything is judged once, in the last window of the dumps.
    """

    READS = "the collectives and process groups in dumps of torch.distributed's flight recorder."
    behind = count(
        "Largest tolerated number of collectives that a rank is behind another.",
        0,
        "collectives",
        minimum=0,
    )
    scan_interval_us = SCAN_INTERVAL
    QUANTITIES = (
        Quantity(BEHIND, "collectives that a rank did not join"),
        Quantity(MISMATCHED, "collectives that differ from those of the other ranks"),
        Quantity(NO_DUMP, "missing dumps of a rank"),
    )
    SEVERITY = Severity.ERROR

    required_inputs = (FlightRecorderDumps(),)

    def _prepare(self) -> None:
        self._groups = ProcessGroups()
        self._details: dict[str, Any] = {}

    def judge(self, step: int) -> bool:
        """Return whether a rank did not join what others joined, in the last window."""
        self._groups.add(self.events(step))
        self.record_points(self._groups.count)
        if self.window_of(step)[1] <= self.base_trial.newest_timestamp:
            return self.not_judged(GOES_ON)
        groups = [*self._groups.groups()]
        if not groups:
            return self.not_judged(NO_COLLECTIVES)
        met = [self._judge_group(step, group) for group in groups]
        met += [self._no_dump(step, rank) for rank in self._groups.without_dump()]
        return any(met)

    def _judge_group(self, step: int, group: ProcessGroup) -> bool:
        met = False
        for rank, missed in group.behind().items():
            note = group.first_missed(rank) if missed > self.behind else None
            met |= self._compare(step, BEHIND, rank, group, missed, self.behind, note)
        for rank, (differing, note) in group.mismatches().items():
            met |= self._compare(step, MISMATCHED, rank, group, differing, 0, note or None)
        return met

    def _no_dump(self, step: int, rank: int) -> bool:
        note = f"Rank {rank} left no dump, so it is unknown what it joined."
        self.count_violations()
        node = f"rank-{rank}"
        self._details.setdefault(node, {})[NO_DUMP] = 1
        return self.measured(step, NO_DUMP, 1, 0, met=True, worker=node, note=note)

    def _compare(
        self,
        step: int,
        quantity: str,
        rank: int,
        group: ProcessGroup,
        value: int,
        limit: int,
        note: str | None,
    ) -> bool:
        node, met = f"rank-{rank}", value > limit
        if met:
            self.count_violations()
            self._details.setdefault(node, {}).setdefault(group.label, {})[quantity] = value
        return self.measured_on(
            (node, group.label), step, quantity, value, limit, met=met, note=note
        )

    def details(self) -> dict[str, Any]:
        """Return the collectives not joined and those that differ by rank and process group."""
        return {**self._details, "last_timestamp": self.window_start}
