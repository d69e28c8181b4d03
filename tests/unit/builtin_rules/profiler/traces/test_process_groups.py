"""What ranks joined, by the events of their dumps."""

from typing import Any

import pytest
from fake_profiler_trial import event

from builtin_rules.profiler.traces.process_groups import ProcessGroup, ProcessGroups, named
from rule_core.profiler.traces.event import TraceEvent


def joined(rank: int, seq: int, name: str = "nccl:all_reduce", **args: Any) -> TraceEvent:
    fields: dict[str, Any] = {
        "group": "0",
        "group_desc": "undefined",
        "ranks": "0-3",
        "seq": seq,
        "input_elements": 8,
        "output_elements": 8,
        "input_dtypes": "Float",
        "output_dtypes": "Float",
    }
    return event(name, 0, 0, phase="collectives", node=f"rank-{rank}", **{**fields, **args})


def only_group(*events: TraceEvent) -> ProcessGroup:
    groups = ProcessGroups()
    groups.add(events)
    [group] = groups.groups()
    return group


def differing(group: ProcessGroup) -> list[int]:
    return [rank for rank, (count, _) in group.mismatches().items() if count]


def test_a_rank_is_behind_if_it_joined_less() -> None:
    group = only_group(joined(0, 1), joined(0, 2), joined(1, 1))
    assert group.behind() == {0: 0, 1: 1}
    assert group.first_missed(1) == (
        "It did not join collective 2 of process group '0' (all_reduce of 8 elements of Float), "
        "which rank 0 began."
    )


def test_the_place_of_the_call_is_named() -> None:
    group = only_group(joined(0, 1, location="train.py:9(step)"), joined(1, 0))
    assert group.first_missed(1).endswith("which rank 0 began at train.py:9(step).")


def test_sends_and_other_events_are_ignored() -> None:
    groups = ProcessGroups()
    groups.add([joined(0, 1, is_p2p=True), event("Forward", 0, 1), joined(0, 1)])
    assert (groups.count, groups.dumps) == (1, {0})


@pytest.mark.parametrize(
    ("differs", "own"),
    [
        ({"name": "nccl:broadcast"}, "broadcast of 8 elements of Float"),
        ({"input_elements": 9}, "all_reduce of 9 to 8 elements of Float"),
        ({"input_dtypes": "Half"}, "all_reduce of 8 elements of Half to Float"),
    ],
)
def test_the_rank_that_differs_from_most_is_named(differs: dict[str, Any], own: str) -> None:
    group = only_group(joined(0, 1), joined(1, 1, **differs), joined(2, 1), joined(1, 2))
    sentence = (
        f"Collective 1 of process group '0' is {own} on rank 1, "
        "and all_reduce of 8 elements of Float on ranks 0, 2."
    )
    assert group.mismatches() == {0: (0, ""), 1: (1, sentence), 2: (0, "")}


def test_of_two_halves_the_one_without_the_lowest_rank_differs() -> None:
    group = only_group(joined(1, 1, input_elements=9), joined(0, 1))
    assert differing(group) == [1]


@pytest.mark.parametrize("operation", ["all_to_all", "gather", "scatter", "all_gather"])
def test_uneven_collectives_may_have_other_sizes(operation: str) -> None:
    name = f"nccl:{operation}"
    assert differing(only_group(joined(0, 1, name), joined(1, 1, name, input_elements=0))) == []


def test_shapes_of_as_many_elements_and_coalesced_collectives_agree() -> None:
    both = [joined(rank, 1, name) for rank in (0, 1) for name in ("nccl:a", "nccl:coalesced")]
    assert differing(only_group(*both)) == []
    assert differing(only_group(*both[:-1])) == [1]


def test_groups_of_one_name_and_other_ranks_are_two() -> None:
    groups = ProcessGroups()
    groups.add([joined(0, 5, ranks="0,1"), joined(2, 9, ranks="2,3")])
    assert [(group.ranks, group.joined) for group in groups.groups()] == [
        ({0, 1}, {0: 5}),
        ({2, 3}, {2: 9}),
    ]
    assert groups.without_dump() == [1, 3]


def test_all_ranks_with_dumps_are_in_the_group_of_all() -> None:
    groups = ProcessGroups()
    groups.add([joined(rank, 1, ranks="", group_desc="default_pg") for rank in (0, 3)])
    assert [group.ranks for group in groups.groups()] == [{0, 3}]
    assert groups.without_dump() == []


def test_many_ranks_are_shortened() -> None:
    assert named([*range(10)]) == "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 2 more"
