import json
from collections.abc import Iterable
from typing import Any

import pytest
from recorded import MISSING, SHARED

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.model.collection import Collection, parse_collections
from rule_core.model.reduction_config import ReductionConfig
from rule_core.model.save_config import SaveConfig, SaveConfigMode
from rule_core.modes import ModeKeys
from rule_core.saving.save_policy import Plan, SavePolicy

TRAIN, EVAL, PREDICT, GLOBAL = ModeKeys
DEFAULTS = {
    "all": [],
    "default": [],
    "weights": ["^(?!gradient).*weight"],
    "gradients": ["^gradient"],
    "losses": ["loss"],
}
EVERY = SaveConfig(save_interval=1)
MIN = ReductionConfig("min")
ALWAYS = frozenset(DEFAULTS) | {"a", "b"}
SAMPLE = SHARED / "h_saveconfig"


def made(*collections: Collection, prepare: bool = True, **options: Any) -> SavePolicy:
    options.setdefault("save_config", EVERY)
    decisions = SavePolicy(DEFAULTS, ["losses"], collections=collections, **options)
    if prepare:
        decisions.prepare()
    return decisions


def walk(decisions: SavePolicy, modes: Iterable[ModeKeys]) -> list[str]:
    """Return the collections saved at each step, with a step count for each mode."""
    counts = dict.fromkeys(ModeKeys, -1)
    found = []
    for mode in modes:
        counts[mode] += 1
        found.append(" ".join(sorted(decisions.saving(mode, counts[mode]))))
    return found


def test_each_collection_is_saved_at_its_steps_in_each_mode() -> None:
    decisions = made(
        Collection("a", "^a", save_config=SaveConfig(save_interval=3, start_step=2, end_step=9)),
        Collection("b", "^b", save_config={TRAIN: SaveConfigMode(2)}),
        Collection("gradients", save_config=EVERY),
        save_config=SaveConfig(save_interval=4, start_step=1),
        include_collections=["a", "b", "gradients"],
    )
    assert walk(decisions, [TRAIN] * 5 + [EVAL] * 5 + [PREDICT] * 2 + [TRAIN] * 5) == [
        "b gradients",
        "gradients",
        "b gradients",
        "a gradients",
        "b gradients losses",
        # Each mode counts for itself, gradients are of training.
        "",
        "",
        "",
        "a",
        "b losses",
        "",
        "",
        "gradients",
        "a b gradients",
        "gradients",
        "b gradients losses",
        "gradients",
    ]
    assert walk(decisions, [GLOBAL] * 2) == ["gradients", "gradients"]


def test_steps_are_decided_as_recorded() -> None:
    if not SAMPLE.exists():
        pytest.skip(MISSING)
    decided = json.loads((SAMPLE / "expected.json").read_text(encoding="utf-8"))["extra"]
    (file,) = SAMPLE.glob("trial/collections/*/*.json")
    collections = parse_collections(memoryview(file.read_bytes()), file.name).collections
    decisions = SavePolicy(
        DEFAULTS,
        ["losses"],
        collections=collections.values(),
        include_collections=["c1", "c2", "c3", "c4", "gradients"],
    )
    decisions.prepare()
    for _, mode, mode_step, expected in decided["decisions"]:
        assert sorted(decisions.saving(ModeKeys[mode], mode_step)) == expected
    after = decisions.manager.get_collections()
    for name, one in collections.items():
        assert after[name].save_config == one.save_config
        assert after[name].reduction_config == one.reduction_config


def test_an_equal_answer_is_the_same_object() -> None:
    decisions = made(save_config=SaveConfig(save_interval=2), include_collections=["weights"])
    assert decisions.saving(TRAIN, 2) is decisions.saving(TRAIN, 4)
    assert decisions.saving(TRAIN, 3) == frozenset()


@pytest.mark.parametrize(
    ("options", "included"),
    [
        ({}, "losses"),
        ({"include_collections": ["weights"]}, "losses weights"),
        ({"include_collections": "weights"}, "losses weights"),
        ({"include_collections": ["all"]}, "all default gradients losses weights"),
        ({"save_all": True}, "all default gradients losses weights"),
        ({"include_regex": "relu"}, "default losses"),
        ({"include_regex": []}, "losses"),
        ({"include_collections": ["none_of_these"]}, "losses"),
    ],
)
def test_what_is_included(options: dict[str, Any], included: str) -> None:
    assert " ".join(sorted(made(**options).included)) == included


def test_only_save_all_gives_all_a_pattern() -> None:
    everything, named = made(save_all=True), made(include_collections=["all"])
    assert everything.collections_of("whatever") == ("all",)
    assert named.collections_of("whatever") == ()
    assert everything.plan("whatever", everything.saving(TRAIN, 0)) == Plan(
        raw=True, shape=False, reductions=(), collections=("all",)
    )


def test_patterns_of_the_hook_belong_to_default() -> None:
    decisions = made(Collection("default", "zz"), include_regex=("a", "b"))
    assert decisions.manager.get("default").include_regex == ["a", "b", "zz"]


def test_arguments_of_other_types_are_refused() -> None:
    for name in ("include_regex", "include_collections"):
        with pytest.raises(
            SMDebugTypeError, match=r"^Patterns and collection names .*, got \[3\]\.$"
        ):
            made(**{name: [3]})


def test_a_name_that_no_collection_has_is_reported(caplog: pytest.LogCaptureFixture) -> None:
    made(include_collections=["weigths", "xyz", "losses"])
    assert [one.getMessage() for one in caplog.records] == [
        "There is no collection 'weigths' to save. Did you mean 'weights'?",
        "There is no collection 'xyz' to save.",
    ]


def test_preparing_fills_what_is_left_open() -> None:
    decisions = made(
        Collection("a", "^a"),
        Collection("b", "^b", None, MIN, {TRAIN: SaveConfigMode(3)}),
        Collection("losses", None, None, MIN, {TRAIN: SaveConfigMode(3)}),
        reduction_config={"reductions": "max"},
        save_config={TRAIN: SaveConfigMode(7)},
    )
    found = decisions.manager.get_collections()
    # What the hook leaves open is as documented.
    hook = SaveConfig(save_interval=500)
    hook.set_save_config(TRAIN, SaveConfigMode(7))
    own = SaveConfig(save_interval=500)
    own.set_save_config(TRAIN, SaveConfigMode(3))
    assert (found["a"].save_config, found["a"].reduction_config) == (hook, ReductionConfig("max"))
    assert (found["b"].save_config, found["b"].reduction_config) == (own, MIN)
    # Scalars are saved as they are, whatever was configured.
    raw = ReductionConfig(save_raw_tensor=True)
    assert (found["losses"].save_config, found["losses"].reduction_config) == (own, raw)
    assert [found[name].save_histogram for name in ("a", "losses")] == [True, False]


def test_the_configurations_of_the_caller_stay_as_they_are() -> None:
    given, own = SaveConfig({TRAIN: SaveConfigMode(7)}), SaveConfig({EVAL: SaveConfigMode(3)})
    decisions = made(Collection("a", "^a", save_config=own), save_config=given)
    assert given == SaveConfig({TRAIN: SaveConfigMode(7)})
    assert own == SaveConfig({EVAL: SaveConfigMode(3)})
    decisions.manager.get("weights").save_config.set_save_config(EVAL, SaveConfigMode(9))  # type: ignore[union-attr]  # prepared
    assert decisions.save_config.get_save_config(EVAL) == SaveConfigMode(500)


def test_empty_collections_are_those_without_patterns_and_tensors() -> None:
    decisions = made(Collection("mine"), Collection("a", "^a"), Collection("b", tensor_names=["x"]))
    assert decisions.empty() == ["mine"]
    decisions.add_tensor("mine", "y")
    assert decisions.empty() == []


def test_a_pattern_is_looked_at_before_the_first_step() -> None:
    with pytest.raises(
        SMDebugValueError,
        match=r"^Collection 'a' has an invalid pattern, got '\(': .*unterminated subpattern.*\.$",
    ):
        made(Collection("a", "("))


def test_what_the_user_changes_before_the_first_step_holds() -> None:
    decisions = made(prepare=False, include_collections=["mine"])
    mine = decisions.manager.get("mine")
    mine.include("^x")
    mine.save_config = {TRAIN: SaveConfigMode(2)}
    mine.reduction_config = MIN
    decisions.prepare()
    assert walk(decisions, [TRAIN] * 3 + [EVAL] * 2) == [
        "losses mine",
        "losses",
        "losses mine",
        "losses mine",
        "losses mine",
    ]
    assert decisions.plan("x1", frozenset({"mine"})) == Plan(
        raw=False, shape=False, reductions=(("min", False),), collections=("mine",)
    )


@pytest.mark.parametrize(
    ("name", "saving", "plan"),
    [
        ("other", ALWAYS, None),
        ("a", frozenset(), None),
        ("a", frozenset({"b"}), None),
        ("a", ALWAYS, Plan(False, True, (("min", False), ("l1", True)), ("a",))),
        ("b", ALWAYS, Plan(True, False, (("max", False), ("min", False)), ("b",))),
        # Each reduction once, in the order of the collections; raw and shape if any asks.
        (
            "ab",
            ALWAYS,
            Plan(True, True, (("min", False), ("l1", True), ("max", False)), ("a", "b")),
        ),
        ("ab", frozenset({"b"}), Plan(True, False, (("max", False), ("min", False)), ("b",))),
        ("loss", ALWAYS, Plan(True, False, (), ("losses",), histogram=False)),
        ("loss_a", frozenset({"losses", "a"}), Plan(True, True, MIN.wanted, ("losses", "a"))),
        ("named", ALWAYS, Plan(False, False, (), ("weights",))),
    ],
)
def test_a_plan_is_what_any_collection_asks_for(
    name: str, saving: frozenset[str], plan: Plan | None
) -> None:
    asked = ReductionConfig("min", abs_norms="l1", save_shape=True)
    if name == "loss_a":
        asked = ReductionConfig("min", save_shape=True)
    decisions = made(
        Collection("a", "a(?!med)", None, asked),
        Collection("b", ["b"], None, ReductionConfig("max,min", save_raw_tensor=True)),
        Collection("weights", None, ["named"], ReductionConfig()),
        Collection("losses", None, None, ReductionConfig("max")),
    )
    assert decisions.plan(name, saving) == plan
    assert decisions.plan(name, saving) == plan


def test_a_plan_is_remembered() -> None:
    decisions = made(include_collections=["weights"])
    saving = decisions.saving(TRAIN, 0)
    first = decisions.plan("weight", saving)
    decisions.manager.get("weights").reduction_config = MIN
    assert decisions.plan("weight", saving) is first
    assert decisions.plan("weight2", saving) == Plan(False, False, MIN.wanted, ("weights",))


def test_all_collections_of_a_tensor_are_reported() -> None:
    decisions = made(Collection("a", "x"))
    assert decisions.collections_of("x_weight_loss") == ("weights", "losses", "a")
    assert decisions.collections_of("y") == ()


def test_what_is_configured_twice_is_joined() -> None:
    own = SaveConfig(save_interval=3)
    decisions = made(Collection("m", "a", None, MIN, own), Collection("m", "b"))
    joined = decisions.manager.get("m")
    assert (joined.include_regex, joined.save_config) == (["a", "b"], own)
    assert joined.reduction_config == MIN
