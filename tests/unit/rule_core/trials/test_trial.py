"""Trial: answers about files that are still coming, and what it remembers."""

from collections.abc import Iterable

import numpy as np
import pytest
import rawtrial
from evaluating import END, ScriptedClock, WoundClock
from faulty_store import REMOTE, CountingStore
from memory_store import MemoryStore

from rule_core.exceptions import (
    InvalidWorker,
    NoMoreData,
    StepNotYetAvailable,
    StepUnavailable,
    TensorDamaged,
    TensorUnavailable,
    TensorUnavailableForStep,
)
from rule_core.format import index_file
from rule_core.model.collection import Collection
from rule_core.modes import ModeKeys
from rule_core.reading.native_index import NativeIndex
from rule_core.trials.refresh import no_refresh, refresh
from rule_core.trials.snapshot_view import snapshot
from rule_core.trials.tensor import StepState
from rule_core.trials.trial import MISSED_KEPT, Trial

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL


def step(number: int, worker: int = 0, mode: str = "GLOBAL", **values: float) -> dict[str, bytes]:
    result = {name: np.float32([value]) for name, value in (values or {"loss": number}).items()}
    return rawtrial.step_files(number, result, mode, worker=f"worker_{worker}")


def collections(workers: int = 1) -> dict[str, bytes]:
    patterns = {"losses": ["loss"]}
    return {
        rawtrial.collections_key(f"worker_{one}"): rawtrial.collections(patterns, workers)
        for one in range(workers)
    }


def trial(files: dict[str, bytes], clock: WoundClock | None = None) -> Trial:
    index = NativeIndex(MemoryStore(files))
    index.refresh()
    index.refresh()
    return Trial("t", "/t", index, clock or ScriptedClock())


def test_equality_is_of_name_and_path() -> None:
    one = trial(collections())
    assert one == one.share()
    assert len({one, one.share()}) == 1
    assert one != Trial("other", "/t", one.index)
    assert one != "t"
    assert repr(one) == "Trial(name='t', path='/t')"


def test_what_is_missed_is_bounded_and_forgotten_once_it_is_there() -> None:
    files = collections() | step(0)
    one = trial(files)
    for number in range(MISSED_KEPT + 5):
        one.tensor_names(collection=f"c{number}")
    assert len(one.missed) == MISSED_KEPT
    files |= step(1, c0=1)
    one.collection("c0").include("c0")
    assert one.tensor_names(collection="c0") == ["c0"]
    assert "collection 'c0'" not in one.missed


def test_collections_are_the_callers_own_and_grow_with_the_trials() -> None:
    files = collections() | step(0)
    one = trial(files)
    two = one.share()
    one.collection("losses").include("mine")
    one.collection("mine").add_tensor_name("loss")
    assert two.collection("losses").include_regex == ["loss"]
    assert sorted(two.collections()) == ["losses"]
    more = rawtrial.collections({"losses": ["loss", "cost"], "new": []})
    files |= {rawtrial.collections_key(): more} | step(1, new=1)
    assert one.steps() == [0, 1]
    assert one.collection("losses").include_regex == ["loss", "mine", "cost"]
    assert sorted(one.collections()) == ["losses", "mine", "new"]


def test_mode_and_mode_step_by_global_step() -> None:
    """Public rules read smdebug's inner mapping."""
    files = collections() | step(0, mode="TRAIN") | step(5, mode="EVAL")
    one = trial(files)
    modes = one._global_to_mode
    assert modes[5] == (EVAL, 5)
    assert dict(modes) == {0: (TRAIN, 0), 5: (EVAL, 5)}
    assert (5 in modes, 6 in modes, len(modes), repr(modes)) == (True, False, 2, repr(dict(modes)))
    files |= step(6, mode="TRAIN")
    assert [*modes] == [0, 5, 6]
    with snapshot(one, 0):
        assert dict(one._global_to_mode) == {0: (TRAIN, 0)}
        with pytest.raises(KeyError):
            _ = modes[5]


def remote_trial() -> tuple[Trial, dict[str, bytes], CountingStore]:
    files = collections() | step(0)
    store = CountingStore(MemoryStore(files), REMOTE)
    index = NativeIndex(store)
    index.refresh()
    return Trial("t", "s3://b/t", index, WoundClock()), files, store


def test_a_remote_trial_shows_what_is_new_when_it_is_asked() -> None:
    one, files, _ = remote_trial()
    assert one.steps() == [0]
    files |= step(1)
    assert one.steps() == [0, 1]
    files |= step(2, new=2)
    assert one.tensor_names() == ["loss", "new"]
    files |= step(3)
    assert one.has_passed_step(3) is StepState.AVAILABLE
    files |= step(4)
    one.refresh_data()
    assert one.tensor("loss").value(4) == 4


def test_questions_about_tensors_of_a_remote_trial_do_not_look_each_time() -> None:
    one, files, store = remote_trial()
    assert one.steps() == [0]
    before = store.counts.total()
    files |= step(1)
    for _ in range(20):
        assert one.tensor("loss").steps() == [0]
    assert store.counts.total() == before
    with refresh(one):
        assert one.tensor("loss").steps() == [0, 1]
    files |= step(2)
    one.clock.sleep(1.0)
    assert one.tensor("loss").steps() == [0, 1, 2]


def test_waiting_for_a_step_of_a_remote_trial_looks_once_a_second() -> None:
    one, files, store = remote_trial()
    before = store.counts["list"]
    one.clock = clock = ScriptedClock(*[int] * 9, lambda: files.update(step(9)))
    one.wait_for_steps([9])
    assert clock.slept == 10.0
    assert store.counts["list"] - before == 2 * 11  # for the end mark and for new files


def test_questions_about_names() -> None:
    one = trial(collections() | step(0, loss=1, w=2, b=3))
    assert one.tensor_names(True) == one.tensor_names(False) == ["b", "loss", "w"]
    assert one.tensor_names(0) == one.tensor_names(step=0) == ["b", "loss", "w"]
    assert one.tensor_names(1) == []
    assert one.tensor_names(mode=None, regex=[["^b", "w$"]]) == ["b", "w"]
    assert one.tensor_names(collection=Collection("x", "w")) == ["w"]
    with pytest.raises(ValueError, match=r"by regex or by collection, not by both\.$"):
        one.tensor_names(regex="b", collection="losses")
    with pytest.raises(TypeError, match=r"^A collection must be a name or a Collection"):
        one.tensor_names(collection=3)  # type: ignore[arg-type]


def test_names_of_steps_alike_are_sorted_once_for_all_views(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths: list[int] = []

    def counting(names: Iterable[str]) -> list[str]:
        result = sorted(names)
        lengths.append(len(result))
        return result

    monkeypatch.setattr(index_file, "sorted", counting, raising=False)
    one = trial(
        collections() | step(0, a=1, b=2) | step(1, a=1, b=2) | step(2, a=1, c=2) | {END: b""}
    )
    two = one.share()
    one.collection("mine").include("[bc]")
    names = {0: ["a", "b"], 1: ["a", "b"], 2: ["a", "c"]}
    for number in (0, 1, 2, 0, 2, 1):
        with snapshot([one, two], number):
            assert one.tensor_names(step=number, collection="metrics") == []
            assert one.tensor_names(step=number, collection="mine") == names[number][1:]
            one.tensor_names(step=number).clear()  # the caller's own
            one.tensor_names(step=number, collection="mine").clear()
            one.tensor_names(step=number, regex="a").clear()
            assert one.tensor_names(step=number, regex="a") == ["a"]
            assert two.tensor_names(step=number) == names[number]
    assert lengths == [2, 2]


def test_names_do_not_depend_on_identities_that_a_copy_took_over() -> None:
    steps = step(0, mode="TRAIN", a=1) | step(1, mode="TRAIN", b=1)
    original = trial(collections() | steps | {END: b""})
    original.steps()
    tensors = original.index.tensors
    assert [tensors.names_at(number, ModeKeys.TRAIN) for number in (0, 1)] == [("a",), ("b",)]
    keys, values = zip(*tensors._names_of.items(), strict=True)
    tensors._names_of = dict(zip(keys, reversed(values), strict=True))  # ids of others
    assert [tensors.names_at(number, ModeKeys.TRAIN) for number in (0, 1)] == [("a",), ("b",)]


def test_names_are_selected_anew_once_a_collection_has_changed() -> None:
    one = trial(collections() | step(0, a=1, b=2) | step(1, a=1) | {END: b""})
    with snapshot([one], 1):
        for include, expected in (("a", ["a"]), ("b", ["a", "b"])):
            one.collection("mine").include(include)
            assert one.tensor_names(collection="mine") == expected
            assert one.tensor_names(step=0, collection="mine") == expected
            assert one.tensor_names(step=1, collection="mine") == ["a"]
        one.collection("mine").remove_tensor_name("a")
        one.collection("mine").include_regex.remove("a")
        assert one.tensor_names(step=1, collection="mine") == []


def test_names_so_far_follow_the_horizon() -> None:
    files = collections() | step(0, a=1) | step(1, b=1) | step(2, a=1)
    one = trial(files)
    names = {0: ["a"], 1: ["a", "b"], 2: ["a", "b"]}
    for number in (2, 0, 1, 0, 2):
        with snapshot([one], number):
            assert one.tensor_names() == names[number]
    files |= step(3, c=1)
    assert one.tensor_names() == ["a", "b", "c"]
    for number in (2, 3):
        with snapshot([one], number):
            assert one.tensor_names() == ["a", "b", "c"][: number or None]


def test_unknown_names_are_looked_for_once_more() -> None:
    files = collections() | step(0)
    one = trial(files)
    with pytest.raises(TensorUnavailable):
        one.tensor("late")
    files |= step(1, late=1)
    assert one.has_tensor("late")
    assert one.tensor("late") is one.tensor("late")
    one.refresh_tensor("late")


def test_value_at_a_step_that_is_still_to_come() -> None:
    files = collections() | step(0) | step(4)
    one = trial(files)
    loss = one.tensor("loss")
    with pytest.raises(StepNotYetAvailable):
        loss.value(9)
    with pytest.raises(StepUnavailable):
        loss.value(2)
    files |= step(9)
    assert loss.value(9)[0] == 9
    with no_refresh(one):
        files |= step(10)
        with pytest.raises(StepNotYetAvailable):
            loss.value(10)
    files[END] = b""
    with pytest.raises(StepUnavailable):
        loss.value(11)


def test_tensor_that_a_step_has_not() -> None:
    one = trial(collections() | step(0) | step(4, w=1))
    with pytest.raises(TensorUnavailableForStep):
        one.tensor("loss").value(4)
    with pytest.raises(TensorUnavailableForStep):
        one.tensor("loss").workers(4)
    with pytest.raises(InvalidWorker, match="'worker_7'"):
        one.tensor("loss").value(0, worker="worker_7")


@pytest.mark.parametrize("limit", [None, "2"])
def test_late_event_file_is_waited_for(limit: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if limit:
        monkeypatch.setenv("SMDEBUG_MISSING_EVENT_FILE_RETRY_LIMIT", limit)
    files = collections() | step(0)
    event = files.pop(rawtrial.event_key(0))
    clock = ScriptedClock(int, int, lambda: files.update({rawtrial.event_key(0): event}))
    assert trial(files, clock).tensor("loss").value(0)[0] == 0
    assert clock.slept == 0.75
    del files[rawtrial.event_key(0)]
    clock = ScriptedClock()
    with pytest.raises(TensorDamaged, match="does not exist"):
        trial(files, clock).tensor("loss").value(0)
    assert clock.slept == (4.0 if limit else 10.0)


@pytest.mark.parametrize("why", ["a later step", "the end", "another worker's later step"])
def test_event_file_that_will_not_come_is_not_waited_for(why: str) -> None:
    files = collections(2) | step(0) | step(0, 1)
    del files[rawtrial.event_key(0)]
    waits = 0.0
    if why == "a later step":
        files |= step(3)
    elif why == "the end":
        files |= {END: b""}
    else:
        files |= step(3, 1)
        waits = 10.0
    clock = ScriptedClock()
    one = trial(files, clock)
    one.steps()
    slept = clock.slept
    with pytest.raises(TensorDamaged):
        one.tensor("loss").value(0)
    assert clock.slept - slept == waits


def test_end_of_the_job_is_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SMDEBUG_TRAINING_END_DELAY_REFRESH", "2.5")
    files = collections() | step(0) | {END: b""}
    clock = ScriptedClock(lambda: files.update(step(1)))
    one = trial(files, clock)
    assert one.loaded_all_steps is False
    assert one.steps() == [0, 1]
    assert (one.loaded_all_steps, clock.slept) == (True, 2.5)
    files |= step(2)
    assert one.steps() == [0, 1]


def test_states_of_steps() -> None:
    files = collections(2) | step(0) | step(0, 1) | step(3) | step(5) | step(5, 1) | step(7)
    one = trial(files)
    states = [one.has_passed_step(number) for number in (0, 1, 3, 6, 7, 9)]
    assert states == [
        StepState.AVAILABLE,
        StepState.UNAVAILABLE,
        StepState.AVAILABLE,
        StepState.NOT_YET_AVAILABLE,
        StepState.NOT_YET_AVAILABLE,
        StepState.NOT_YET_AVAILABLE,
    ]
    assert (one.steps(), one.steps(show_incomplete_steps=True)) == ([0, 3, 5], [0, 3, 5, 7])
    assert one.tensor("loss").steps() == [0, 3, 5]
    assert one.tensor("loss").steps(show_incomplete_steps=True) == [0, 3, 5, 7]
    assert one.has_passed_step(0, TRAIN) is StepState.NOT_YET_AVAILABLE
    files[END] = b""
    assert [one.has_passed_step(number) for number in (1, 7, 9)] == [
        StepState.UNAVAILABLE,
        StepState.AVAILABLE,
        StepState.UNAVAILABLE,
    ]


def test_waiting_for_steps() -> None:
    files = collections() | step(0)
    clock = ScriptedClock(int, lambda: files.update(step(2)), lambda: files.update({END: b""}))
    one = trial(files, clock)
    one.wait_for_steps([])
    one.wait_for_steps([0, 2], mode=None)
    with pytest.raises(StepUnavailable):
        one.wait_for_steps([1])
    with pytest.raises(NoMoreData, match=r"before step 5 of mode GLOBAL: its last step is 2\.$"):
        one.wait_for_steps([5])
    with pytest.raises(NoMoreData, match=r"last step is -1\.$"):
        one.wait_for_steps([0], mode=EVAL)


def test_modes_and_their_steps() -> None:
    files = collections() | step(0, mode="EVAL") | step(4, mode="TRAIN")
    one = trial(files)
    assert one.modes() == [EVAL, TRAIN]
    assert (one.mode(4), one.mode_step(4), one.mode(7)) == (TRAIN, 4, None)
    assert one.global_step(TRAIN, 4) == 4
    assert one.global_step(None, 99) == 99
    assert one.global_step(TRAIN, 9) is None
    files |= step(9, mode="TRAIN")
    assert (one.global_step(TRAIN, 9), one.mode(9)) == (9, TRAIN)
    assert (one.tensor_names(step=3, mode=TRAIN), one.steps(ModeKeys.PREDICT)) == ([], [])


def test_values_of_inputs_labels_and_predictions() -> None:
    values = {"labels_10": 10.0, "labels_9": 9.0, "my_label": 0.0, "predictions_0": 1.0, "in": 2.0}
    files = collections() | step(3, mode="TRAIN", **values)
    files[rawtrial.collections_key()] = rawtrial.collections({"inputs": ["^in$"]})
    one = trial(files)
    assert [float(value[0]) for value in one.labels(3)] == [0.0, 9.0, 10.0]
    assert [float(value[0]) for value in one.predictions(3, TRAIN)] == [1.0]
    assert [float(value[0]) for value in one.inputs(3)] == [2.0]
    assert one.inputs(4) == []


def test_previous_steps() -> None:
    one = trial(collections() | step(0) | step(4) | step(7))
    loss = one.tensor("loss")
    assert [loss.prev_steps(5, n) for n in (None, 0, 1, 5)] == [[0, 4], [], [4], [0, 4]]
    with pytest.raises(ValueError, match=r"must be >= 0, got -1\.$"):
        loss.prev_steps(5, -1)
    assert repr(loss) == "Tensor('loss')"
    with pytest.raises(NotImplementedError, match=r"Tensor\.step was removed"):
        loss.step(0)


def test_values_are_the_callers_own_and_views_are_in_place() -> None:
    one = trial(collections() | step(4))
    loss = one.tensor("loss")
    value = loss.value(4)
    value[0] = 99
    assert loss.value(4)[0] == 4
    view = loss.view(4)
    assert not view.flags.writeable
    assert np.shares_memory(view, loss.view(4))
    assert one.reads == 4
