"""Which rules fit a trial: those whose inputs it holds, or may still come to hold."""

from collections.abc import Iterator

import evaluating
import numpy as np
import pytest
from memory_store import MemoryStore

from rule_core.storage import StorageUnavailableError
from rule_runner.commands.check.rule_choice import choose_rules, has_ended
from rule_runner.errors import TrialError
from rule_runner.loading.trial_search import TrialFolder

TENSORS = TrialFolder("/trial", tensors=True, profiler=False)
BOTH = TrialFolder("/trial", tensors=True, profiler=True)
STEPS = {step: {"loss": np.ones(1)} for step in range(2)}
COLLECTIONS = {"losses": ["^loss$"]}


class Refusing(MemoryStore):
    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        del start_after
        raise StorageUnavailableError(prefix, "Permission denied")


def chosen(folder: TrialFolder, *, ended: bool, follow: bool) -> tuple[set[str], set[str]]:
    """Return the rules that fit, and those that do not."""
    files = evaluating.trial(STEPS, COLLECTIONS, ended=ended)
    with evaluating.stores(MemoryStore(files)):
        choice = choose_rules(folder, follow=follow)
    return {*choice.rules}, {*choice.left_out}


@pytest.mark.parametrize(("ended", "follow"), [(True, True), (True, False), (False, False)])
def test_rules_without_their_inputs_are_left_out(ended: bool, follow: bool) -> None:
    fitting, left_out = chosen(TENSORS, ended=ended, follow=follow)
    assert {"LossNotDecreasing", "Overfit"} <= fitting
    assert {"VanishingGradient", "TreeDepth", "SimilarAcrossRuns"} <= left_out


def test_what_may_come_leaves_no_rule_out_but_a_parameter_does() -> None:
    fitting, left_out = chosen(TENSORS, ended=False, follow=True)
    assert {"VanishingGradient", "TreeDepth"} <= fitting
    assert left_out == {"AllZero", "SimilarAcrossRuns", "TensorVariance", "UnchangedTensor"}


def test_each_kind_of_data_has_its_rules() -> None:
    fitting, left_out = chosen(BOTH, ended=True, follow=False)
    assert {"LossNotDecreasing", "ProfilerReport"} <= fitting
    assert {"TreeDepth", "StepOutlier", "LowGPUUtilization"} <= left_out
    assert "ProfilerReport" not in chosen(TENSORS, ended=True, follow=False)[0]


@pytest.mark.parametrize("ended", [True, False])
def test_a_trial_has_ended_once_its_end_mark_is_there(ended: bool) -> None:
    with evaluating.stores(MemoryStore(evaluating.trial(STEPS, ended=ended))):
        assert has_ended(TENSORS) is ended


def test_a_store_that_refuses_is_named() -> None:
    with evaluating.stores(Refusing({})):
        with pytest.raises(TrialError, match=r"^Trial '/trial' cannot be .*: Permission denied"):
            choose_rules(TENSORS, follow=False)
        assert has_ended(BOTH) is True
