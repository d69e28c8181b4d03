"""ProcessGroups: what the ranks of each process group joined, by dumps of the flight recorder.

Ranks join the collectives of a process group in the same order, and each counts them. So a rank
whose count is behind did not join the next one, and what carries the same number has to be the same
collective on all ranks.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from smdebug.profiler.trace_event_file_parser import TraceEvent

COLLECTIVES: Final = "collectives"
PROCESS_GROUPS: Final = "process_groups"
_WORLD: Final = "default_pg"
_NODE: Final = re.compile(r"rank-(\d{1,6})")
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9})(?::(\d{1,9}))?)?")
_MOST_RANKS: Final = 1 << 17
# The ranks of these may have tensors of other sizes: roots, and uneven shares.
_UNEVEN: Final = frozenset(
    {"gather", "all_gather", "all_gather_v", "scatter", "reduce_scatter", "reduce_scatter_v"}
    | {"all_to_all", "all_to_all_single", "all_to_all_v_single", "all_to_allv", "coalesced"}
)
_NAMED_RANKS: Final = 8  # in a sentence


class Call(NamedTuple):
    """What the ranks of a collective have to agree on.

    Attributes
    ----------
    operation
        Such as ``all_reduce``.
    elements
        The number of elements of the inputs and of the outputs; () where ranks may differ.
    dtypes
        The types of the inputs and of the outputs; () likewise.
    """

    operation: str
    elements: tuple[int, ...] = ()
    dtypes: tuple[str, ...] = ()

    def __str__(self) -> str:
        elements = [f"{number:,}" for number in dict.fromkeys(self.elements)]
        sizes = f" of {' to '.join(elements)} elements" if elements else ""
        dtypes = " to ".join(dict.fromkeys(self.dtypes))
        return f"{self.operation}{sizes}{dtypes and f' of {dtypes}'}"


@dataclass(slots=True)
class ProcessGroup:
    """One process group.

    Attributes
    ----------
    label
        Its name for users.
    is_world
        Whether all ranks are in it.
    ranks
        Its ranks.
    joined
        The number of the last collective of each rank that is known.
    calls
        By the number of a collective, what ranks called.
    places
        By the number of a collective, a line of code that called it.
    """

    label: str
    is_world: bool = False
    ranks: set[int] = field(default_factory=set)
    joined: dict[int, int] = field(default_factory=dict)
    calls: dict[int, dict[Call, set[int]]] = field(default_factory=dict)
    places: dict[int, str] = field(default_factory=dict)

    def add(self, rank: int, seq: int, call: Call, place: str) -> None:
        """Record that a rank joined a collective."""
        self.ranks.add(rank)
        self.joined[rank] = max(self.joined.get(rank, 0), seq)
        self.calls.setdefault(seq, {}).setdefault(call, set()).add(rank)
        if place:
            self.places.setdefault(seq, place)

    def behind(self) -> dict[int, int]:
        """Return how many collectives each rank did not join."""
        newest = max(self.joined.values(), default=0)
        return {rank: newest - last for rank, last in sorted(self.joined.items())}

    def first_missed(self, rank: int) -> str:
        """Return a sentence on the first collective that a rank did not join."""
        seq = self.joined[rank] + 1
        callers = self.calls.get(seq, {})
        what = " or ".join(map(str, callers)) or "no longer in the dumps"
        others = sorted(other for other, last in self.joined.items() if last >= seq)
        place = self.places.get(seq)
        return (
            f"It did not join collective {seq} of {self.label} ({what}), which "
            f"{named(others)} began{(place and f' at {place}') or ''}."
        )

    def mismatches(self) -> dict[int, tuple[int, str]]:
        """Return how many collectives of each rank differ from those of most ranks.

        Of two equal halves, the one without the lowest rank differs. The first difference of a rank
        is described in a sentence.
        """
        mismatches = dict.fromkeys(self.joined, (0, ""))
        for seq in sorted(self.calls):
            by_rank = _calls_by_rank(self.calls[seq])
            [(usual, _)] = Counter(by_rank.values()).most_common(1)  # of several, the lowest rank's
            usual_ranks = named([rank for rank, calls in by_rank.items() if calls == usual])
            for rank, calls in by_rank.items():
                if calls != usual:
                    count, note = mismatches[rank]
                    mismatches[rank] = (
                        count + 1,
                        note
                        or (
                            f"Collective {seq} of {self.label} is {_text(calls)} on rank {rank}, "
                            f"and {_text(usual)} on {usual_ranks}."
                        ),
                    )
        return mismatches


class ProcessGroups:
    """The process groups of a training, from the events of the dumps.

    Attributes
    ----------
    dumps
        The ranks whose dumps there are.
    count
        The number of collectives of all ranks.
    """

    def __init__(self) -> None:
        self.dumps: set[int] = set()
        self.count = 0
        self._groups: dict[tuple[str, str], ProcessGroup] = {}

    def add(self, events: Iterable["TraceEvent"]) -> None:
        """Add events of dumps; others are ignored."""
        for event in events:
            match = _NODE.fullmatch(event.node_id or "")
            if match is None or event.event_phase not in {COLLECTIVES, PROCESS_GROUPS}:
                continue
            rank, args = int(match[1]), event.event_args or {}
            self.dumps.add(rank)
            if event.event_phase == PROCESS_GROUPS:
                if "group" in args:
                    group = self._group(args)
                    group.joined[rank] = max(group.joined.get(rank, 0), args["joined"])
            elif not args.get("is_p2p"):
                self.count += 1
                call = _call(event.event_name, args)
                self._group(args).add(rank, args["seq"], call, args.get("location", ""))

    def groups(self) -> Iterator[ProcessGroup]:
        """Yield the groups by their names; the one of all ranks has all whose dumps there are."""
        for _, group in sorted(self._groups.items()):
            if group.is_world:
                group.ranks |= self.dumps
            yield group

    def without_dump(self) -> list[int]:
        """Return the ranks of the groups whose dumps are missing."""
        ranks: set[int] = set()
        return sorted(ranks.union(*(group.ranks for group in self.groups())) - self.dumps)

    def _group(self, args: dict[str, Any]) -> ProcessGroup:
        key = args["group"], args["ranks"]
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = ProcessGroup(f"process group {args['group']!r}")
            group.ranks |= {*_ranks(args["ranks"])}
        description = args.get("group_desc")
        if description and description != "undefined":
            group.label = f"process group {args['group']!r} ({description})"
            group.is_world = description == _WORLD
        return group


def named(ranks: list[int]) -> str:
    """Return ranks for a sentence.

    >>> named([3]), named([0, 2])
    ('rank 3', 'ranks 0, 2')
    """
    texts = [str(rank) for rank in ranks[:_NAMED_RANKS]]
    more = f" and {len(ranks) - _NAMED_RANKS} more" if len(ranks) > _NAMED_RANKS else ""
    return f"rank{'s' * (len(ranks) > 1)} {', '.join(texts)}{more}"


def _call(name: str, args: dict[str, Any]) -> Call:
    operation = name.partition(":")[2].partition(" ")[0] or name
    if operation in _UNEVEN:
        return Call(operation)
    elements = args["input_elements"], args["output_elements"]
    return Call(operation, elements, (args["input_dtypes"], args["output_dtypes"]))


def _ranks(text: str) -> Iterator[int]:
    """Yield the ranks of a text such as ``0-6:2``.

    >>> list(_ranks("0-6:2")), list(_ranks("1,5"))
    ([0, 2, 4, 6], [1, 5])
    """
    for match in map(_RANGE.fullmatch, text.split(",") if text else ()):
        if match is not None:
            first = int(match[1])
            last = min(int(match[2] or first), first + _MOST_RANKS)
            yield from range(first, last + 1, max(int(match[3] or 1), 1))


def _calls_by_rank(calls: dict[Call, set[int]]) -> dict[int, frozenset[Call]]:
    """Return what each rank called with one number: one collective, or coalesced ones."""
    by_rank: defaultdict[int, set[Call]] = defaultdict(set)
    for call, ranks in calls.items():
        for rank in ranks:
            by_rank[rank].add(call)
    return {rank: frozenset(by_rank[rank]) for rank in sorted(by_rank)}


def _text(calls: frozenset[Call]) -> str:
    return " with ".join(sorted(map(str, calls)))
