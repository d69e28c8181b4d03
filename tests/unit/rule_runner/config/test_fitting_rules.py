"""Which rules fit a trial: those whose inputs it holds, or may still come to hold."""

from collections.abc import Iterator

import evaluating
import numpy as np
import pytest
from memory_store import MemoryStore

from builtin_rules import Overfit
from builtin_rules.statistics.training_kind import TrainingKind
from rule_core.storage.base import StorageUnavailableError
from rule_runner.config.fitting_rules import RuleChoice, Unfit, choose_rules, has_ended
from rule_runner.errors import TrialError
from rule_runner.loading.trial_search import TrialFolder

TENSORS = TrialFolder("/trial", tensors=True, profiler=False)
BOTH = TrialFolder("/trial", tensors=True, profiler=True)
STEPS = {step: {"loss": np.ones(1)} for step in range(2)}
AT = np.arange(8)
COLLECTIONS = {"losses": ["^loss$"]}


class Refusing(MemoryStore):
    def list_keys(self, prefix: str, *, start_after: str = "") -> Iterator[str]:
        del start_after
        raise StorageUnavailableError(prefix, "Permission denied")


def chosen(folder: TrialFolder, *, ended: bool, follow: bool) -> tuple[set[str], set[str]]:
    """Return the rules that fit, and those that do not."""
    files = evaluating.trial(STEPS, COLLECTIONS, ended=ended)
    with evaluating.stores(MemoryStore(files)):
        profiler = folder.path if folder.profiler else None
        choice = choose_rules(folder.path, profiler, follow=follow)
    return {*choice.rules}, {*choice.left_out}


@pytest.mark.parametrize(("ended", "follow"), [(True, True), (True, False), (False, False)])
def test_rules_without_their_inputs_are_left_out(ended: bool, follow: bool) -> None:
    fitting, left_out = chosen(TENSORS, ended=ended, follow=follow)
    assert {"LossNotDecreasing", "Overfit"} <= fitting
    assert {"VanishingGradient", "TreeDepth", "SimilarAcrossRuns"} <= left_out


def test_what_may_come_leaves_no_rule_out_but_a_parameter_does() -> None:
    fitting, left_out = chosen(TENSORS, ended=False, follow=True)
    assert {"VanishingGradient", "TreeDepth"} <= fitting
    needy = {"AllZero", "Baseline", "SimilarAcrossRuns", "TensorVariance", "UnchangedTensor"}
    assert left_out == needy


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
            choose_rules("/trial", None, follow=False)
        assert has_ended(BOTH) is True


def test_rules_unsuited_to_the_kind_of_training_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reason = "Losses of a GAN need not fall."
    monkeypatch.setattr(Overfit, "UNSUITED", {TrainingKind.ADVERSARIAL: reason})
    steps = {step: {"d_loss": np.ones(1), "g_loss": np.ones(1)} for step in range(2)}
    files = evaluating.trial(steps, {"losses": ["loss"]}, ended=True)
    with evaluating.stores(MemoryStore(files)):
        choice = choose_rules("/trial", None, follow=False)
    assert choice.left_out["Overfit"] == reason
    assert "1 that cannot judge this kind of training" in choice.note()
    assert "Overfit" in chosen(TENSORS, ended=True, follow=False)[0]


def test_built_in_rules_name_the_trainings_that_they_cannot_judge() -> None:
    steps = {step: {"policy_loss": np.ones(1), "fingerprints/inputs": AT} for step in range(2)}
    files = evaluating.trial(steps, {"losses": ["loss"], "fingerprints": ["^f"]}, ended=True)
    with evaluating.stores(MemoryStore(files)):
        choice = choose_rules("/trial", None, follow=False)
    reason = "reinforcement learning repeats batches by design"
    assert choice.left_out["RepeatedBatches"] == reason


def test_a_note_counts_the_causes() -> None:
    unfit = {"A": Unfit("x", "."), "B": Unfit("y", "."), "C": Unfit("y", ".")}
    note = "3 rules were left out: 2 y, 1 x. The report names each with the reason."
    assert RuleChoice((), unfit).note() == note
    assert RuleChoice(("A",), {}).note() == ""
