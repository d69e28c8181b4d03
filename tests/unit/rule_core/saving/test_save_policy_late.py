from typing import Any

import pytest

from rule_core.model.collection import Collection
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig, SaveConfigMode
from rule_core.modes import ModeKeys
from rule_core.saving.save_policy import Plan, SavePolicy

TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
DEFAULTS = {"weights": ["weight"], "losses": ["loss"]}
EVERY = SaveConfig(save_interval=1)
MIN = ReductionConfig("min")


def made(*, prepare: bool = True, **options: Any) -> SavePolicy:
    options.setdefault("save_config", EVERY)
    decisions = SavePolicy(DEFAULTS, ["losses"], **options)
    if prepare:
        decisions.prepare()
    return decisions


def test_a_tensor_may_join_a_collection_late() -> None:
    decisions = made(reduction_config=MIN, save_config=SaveConfig(save_interval=2))
    saving = decisions.saving(TRAIN, 0)
    assert decisions.plan("x", saving) is None
    assert decisions.add_tensor("losses", "x") is False
    assert decisions.plan("x", saving) == Plan(True, False, (), ("losses",), histogram=False)
    # A collection made now is configured like the others.
    assert decisions.add_tensor("mine", "x", include=True) is True
    assert decisions.add_tensor("mine", "x", include=True) is False
    assert decisions.saving(TRAIN, 0) == {"losses", "mine"}
    assert decisions.saving(TRAIN, 1) == frozenset()
    assert decisions.plan("x", decisions.saving(TRAIN, 0)) == Plan(
        True, False, MIN.wanted, ("losses", "mine")
    )
    assert decisions.manager.get("mine").save_config == SaveConfig(save_interval=2)
    # One that was there and not saved is newly included.
    assert decisions.add_tensor("weights", "y") is False
    assert decisions.add_tensor("weights", "y", include=True) is True
    assert decisions.included == {"losses", "mine", "weights"}


def test_a_tensor_may_join_a_collection_before_the_first_step() -> None:
    decisions = made(prepare=False, reduction_config=MIN)
    assert decisions.add_tensor("mine", "x", include=True) is True
    assert decisions.manager.get("mine").reduction_config is None
    decisions.prepare()
    assert decisions.plan("x", frozenset({"mine"})) == Plan(False, False, MIN.wanted, ("mine",))


def test_a_collection_that_is_made_late_is_saved_by_the_hooks_configuration() -> None:
    decisions = made(include_collections=["mine"], reduction_config=MIN)
    mine = decisions.manager.get("mine")
    mine.include("x")
    assert decisions.saving(TRAIN, 0) == {"losses", "mine"}
    assert decisions.plan("x", frozenset({"mine"})) == Plan(False, False, MIN.wanted, ("mine",))
    mine.save_config = {TRAIN: SaveConfigMode(2)}
    assert [len(decisions.saving(mode, 1)) for mode in (TRAIN, EVAL)] == [1, 2]


def test_a_collection_may_be_included_at_any_time() -> None:
    decisions = made(prepare=False)
    decisions.include("weights")
    assert decisions.manager.get("weights").include_regex == DEFAULTS["weights"]
    decisions.prepare()
    saving = decisions.saving(TRAIN, 0)
    assert decisions.plan("x", saving) is None
    decisions.include(Collection("mine", "x", reduction_config=MIN))
    assert decisions.included == {"losses", "mine", "weights"}
    assert decisions.manager.get("mine").save_config == EVERY
    assert decisions.plan("x", decisions.saving(TRAIN, 0)) == Plan(
        False, False, MIN.wanted, ("mine",)
    )


def test_names_without_end_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rule_core.saving.save_policy._MOST_NAMES", 3)
    decisions = made()
    for at in range(10):
        plan = decisions.plan(f"loss{at}", frozenset({"losses"}))
        assert plan == Plan(True, False, (), ("losses",), histogram=False)
    assert len(decisions._plans) <= 3
    assert len(decisions._members) <= 3
