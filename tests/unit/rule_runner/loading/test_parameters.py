"""Binding: from the text of parameters to constructor arguments, and to the rule."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rule_core.rules.params import FloatParam, IntParam, NamesParam
from rule_runner.errors import ParameterError, RuleFailedError
from rule_runner.loading.loader import LoadedRule, load_builtin
from rule_runner.loading.parameters import BoundRule, accepts, bind, construct, other_trials
from smdebug.exceptions import SMDebugValueError
from smdebug.rules import Rule

TRIAL, OTHER = object(), object()


class Base(Rule):
    def invoke_at_step(self, step: int) -> bool:
        return step > 0


class BuiltIn(Base):
    PARAMS = (
        FloatParam("threshold", "A floor.", 0.5, minimum=0),
        IntParam("start_step", "First step.", 0),
    )

    def __init__(self, base_trial: object, threshold: float = 0.5, start_step: int = 0) -> None:
        super().__init__(base_trial)
        self.given = (threshold, start_step)


class Custom(Base):
    def __init__(self, base_trial: object, threshold: str, limit: str = "9") -> None:
        super().__init__(base_trial)
        self.given = (threshold, limit)


class KeywordOnly(Base):
    def __init__(self, trial: object, *args: object, threshold: str, mode: str = "TRAIN") -> None:
        super().__init__(trial)
        self.given = (args, threshold, mode)


class TakesAny(Base):
    def __init__(self, base_trial: object, **kwargs: Any) -> None:
        super().__init__(base_trial)
        self.given = kwargs


class Everything(Base):
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)


class Declared(Base):
    PARAMS = (FloatParam("threshold", "A floor."),)

    def __init__(self, base_trial: object, threshold: Any = 0.1) -> None:
        super().__init__(base_trial)
        self.given = threshold


def loaded(rule_class: type[Rule], builtin: bool = False) -> LoadedRule:
    source = None if builtin else Path("/opt/rule.py")
    return LoadedRule(rule_class.__name__, rule_class, builtin, source, "0" * 64)


def given(rule: Rule) -> object:
    return vars(rule)["given"]


# --- built-in rules


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ({}, {"threshold": 0.5, "start_step": 0}),
        ({"threshold": "1e-3"}, {"threshold": 1e-3, "start_step": 0}),
        ({"threshold": "", "start_step": "7.0"}, {"threshold": 0.5, "start_step": 7}),
        ({"threshold": "None"}, {"threshold": 0.5, "start_step": 0}),
    ],
    ids=["defaults", "given", "empty", "None"],
)
def test_builtin_parameters_are_parsed(raw: dict[str, str], values: dict[str, object]) -> None:
    rule = loaded(BuiltIn, builtin=True)
    bound = bind(rule, raw)
    arguments = {name: values[name] for name, text in raw.items() if text not in {"", "None"}}
    assert bound == BoundRule(rule, arguments, values, ())
    assert given(construct(bound, TRIAL)) == tuple(values.values())


def test_a_packaged_rule_gets_every_declared_value() -> None:
    rule = replace(loaded(BuiltIn), package="rules 1.0")
    bound = bind(rule, {"threshold": "1"})
    assert bound.arguments == bound.parameters == {"threshold": 1, "start_step": 0}


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        ({"threshold": "abc"}, "Parameter 'threshold' must be a finite number >= 0, got 'abc'."),
        (
            {"treshold": "1"},
            (
                "Unknown parameter 'treshold' of rule 'BuiltIn'. Did you mean 'threshold'? "
                "Its parameters: 'threshold', 'start_step'."
            ),
        ),
    ],
    ids=["value", "name"],
)
def test_builtin_parameter_refused(raw: dict[str, str], sentence: str) -> None:
    with pytest.raises(ParameterError, match=f"^{re.escape(sentence)}$"):
        bind(loaded(BuiltIn, builtin=True), raw)


# --- custom rules


@pytest.mark.parametrize(
    ("rule_class", "raw", "expected"),
    [
        pytest.param(Custom, {"threshold": " 1e-3 "}, (" 1e-3 ", "9"), id="text-unchanged"),
        pytest.param(Custom, {"threshold": "", "limit": "None"}, ("", "None"), id="empty"),
        pytest.param(KeywordOnly, {"threshold": "1"}, ((), "1", "TRAIN"), id="keyword-only"),
        pytest.param(TakesAny, {"a-b.c": "1", "threshold": "2"}, {"a-b.c": "1", "threshold": "2"}),
        pytest.param(Declared, {"threshold": "2"}, "2", id="declared-is-unchanged-too"),
    ],
)
def test_custom_parameters(rule_class: type[Rule], raw: dict[str, str], expected: object) -> None:
    bound = bind(loaded(rule_class), raw)
    assert given(construct(bound, TRIAL)) == expected
    assert (bound.parameters, bound.warnings) == (bound.arguments, ())


@pytest.mark.parametrize("rule_class", [Custom, KeywordOnly])
def test_custom_parameter_missing(rule_class: type[Rule]) -> None:
    name = rule_class.__name__
    sentence = rf"^Rule '{name}' needs parameter 'threshold', which was not given\.$"
    with pytest.raises(ParameterError, match=sentence):
        bind(loaded(rule_class), {"mode": "EVAL"})


@pytest.mark.parametrize(
    ("rule_class", "name", "sentence"),
    [
        (
            Custom,
            "limits",
            "Rule 'Custom' has no parameter 'limits': left out. Did you mean 'limit'?",
        ),
        (Custom, "colour", "Rule 'Custom' has no parameter 'colour': left out."),
        (Custom, "base_trial", "Rule 'Custom' has no parameter 'base_trial': left out."),
        (TakesAny, "base_trial", "Rule 'TakesAny' has no parameter 'base_trial': left out."),
        (Base, "other_trials", "Rule 'Base' has no parameter 'other_trials': left out."),
        (Base, "action_str", "Rule 'Base' has no parameter 'action_str': left out."),
        (KeywordOnly, "args", "Rule 'KeywordOnly' has no parameter 'args': left out."),
    ],
)
def test_custom_parameter_unknown(rule_class: type[Rule], name: str, sentence: str) -> None:
    needed = {"threshold": "1"} if rule_class in (Custom, KeywordOnly) else {}
    bound = bind(loaded(rule_class), {**needed, name: "1"})
    assert (bound.arguments, bound.warnings) == (needed, (sentence,))


# --- trials and actions


class BaseOnly(Base):
    def __init__(self, base_trial: object) -> None:
        super().__init__(base_trial)


class OthersByDefault(Base):
    def __init__(self, base_trial: object, other_trials: Any = None) -> None:
        super().__init__(base_trial, other_trials)


class OthersRequired(Base):
    def __init__(self, base_trial: object, other_trials: Any) -> None:
        super().__init__(base_trial, other_trials=other_trials)


class ActionRequired(Base):
    def __init__(self, base_trial: object, action_str: str) -> None:
        super().__init__(base_trial, action_str)


class ActionThenOthers(Base):
    def __init__(self, base_trial: object, action_str: str, other_trials: Any = None) -> None:
        super().__init__(base_trial, action_str, other_trials)


class OthersThenAction(Base):
    def __init__(self, base_trial: object, other_trials: Any = None, action_str: str = "") -> None:
        super().__init__(base_trial, other_trials, action_str)


@pytest.mark.parametrize(
    ("rule_class", "takes_others", "takes_action"),
    [
        (Base, True, True),
        (BaseOnly, False, False),
        (OthersByDefault, True, False),
        (OthersRequired, True, False),
        (ActionRequired, False, True),
        (ActionThenOthers, True, True),
        (OthersThenAction, True, True),
        (Everything, True, True),
    ],
)
def test_call_styles(rule_class: type[Rule], takes_others: bool, takes_action: bool) -> None:
    bound = bind(loaded(rule_class), {})
    alone = construct(bound, TRIAL)
    assert (alone.base_trial, alone.other_trials, alone._action_str) == (TRIAL, None, "")
    rule = construct(bound, TRIAL, (OTHER,), "[]")
    expected = (TRIAL, [OTHER] if takes_others else None, "[]" if takes_action else "")
    assert (rule.base_trial, rule.other_trials, rule._action_str) == expected


def test_a_default_of_its_own_is_left_alone() -> None:
    class Own(Base):
        def __init__(self, trial: object, other_trials: Any = (), action_str: str = "{}") -> None:
            super().__init__(trial)
            self.given = (other_trials, action_str)

    assert given(construct(bind(loaded(Own), {}), TRIAL)) == ((), "{}")


@pytest.mark.parametrize(
    ("rule_class", "name", "expected"),
    [
        (BuiltIn, "start_step", True),
        (BuiltIn, "end_step", False),
        (Custom, "limit", True),
        (Custom, "base_trial", False),
        (KeywordOnly, "mode", True),
        (KeywordOnly, "trial", False),
        (TakesAny, "start_step", False),
        (OthersByDefault, "other_trials", True),
    ],
)
def test_accepts(rule_class: type[Rule], name: str, expected: bool) -> None:
    assert accepts(loaded(rule_class), name) is expected


# --- constructors that raise


def raising(error: Callable[[], BaseException]) -> type[Rule]:
    class Raising(Base):
        def __init__(self, base_trial: object) -> None:
            super().__init__(base_trial)
            raise error()

    return Raising


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (lambda: KeyError("conv1"), "KeyError while it was constructed: 'conv1'."),
        (lambda: ValueError("no\nnumber."), "ValueError while it was constructed: no number."),
        (AssertionError, "AssertionError while it was constructed."),
        (lambda: SystemExit(3), "SystemExit while it was constructed: 3."),
        (
            lambda: SMDebugValueError("Bad."),
            "SMDebugValueError while it was constructed: Bad.",
        ),
    ],
    ids=["key", "lines", "no-text", "exit", "value"],
)
def test_constructor_raises(error: Callable[[], BaseException], told: str) -> None:
    bound = bind(loaded(raising(error)), {})
    with pytest.raises(RuleFailedError, match=f"^Rule 'Raising' raised {re.escape(told)}$"):
        construct(bound, TRIAL)


def test_builtin_constructor_refuses() -> None:
    rule = loaded(raising(lambda: SMDebugValueError("Give one of a and b.")), builtin=True)
    with pytest.raises(ParameterError, match=r"^Give one of a and b\.$"):
        construct(bind(rule, {}), TRIAL)


def test_builtin_constructor_breaks() -> None:
    rule = loaded(raising(lambda: KeyError("x")), builtin=True)
    with pytest.raises(RuleFailedError, match=r"^Rule 'Raising' raised KeyError while it was"):
        construct(bind(rule, {}), TRIAL)


def test_interrupt_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        construct(bind(loaded(raising(KeyboardInterrupt)), {}), TRIAL)


# --- other trials as parameters


class Compares(Base):
    PARAMS = (NamesParam("other_trials", "Runs.", required=True), IntParam("limit", "A limit.", 1))

    def __init__(self, base_trial: object, other_trials: Any = None, limit: Any = 1) -> None:
        super().__init__(base_trial, other_trials=other_trials)
        self.given = (other_trials, limit)


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        ({}, ()),
        ({"other_trials": "/runs/a, /runs/b"}, ("/runs/a", "/runs/b")),
        ({"other_trial": "/runs/a", "limit": "2"}, ("/runs/a",)),
        ({"other_trial_0": "/runs/a;/runs/b", "other_trial_1": "/runs/c"}, tuple("abc")),
        ({"other_trials": "None", "other_trial": ""}, ()),
    ],
    ids=["none", "list", "old-name", "numbered", "not-given"],
)
def test_a_builtin_rule_is_given_other_trials_by_path(
    raw: dict[str, str], paths: tuple[str, ...]
) -> None:
    rule = loaded(Compares, builtin=True)
    expected = tuple(path if "/" in path else f"/runs/{path}" for path in paths)
    assert other_trials(rule, raw) == expected
    bound = bind(rule, raw)
    limit = int(raw.get("limit", 1))
    shown = {"other_trials": expected} if expected else {}
    arguments = {"limit": limit} if "limit" in raw else {}
    assert (bound.arguments, bound.parameters) == (arguments, {**shown, "limit": limit})
    assert given(construct(bound, TRIAL, [OTHER])) == ([OTHER], limit)


@pytest.mark.parametrize(
    ("rule_class", "builtin", "name", "accepted"),
    [
        (Compares, True, "other_trial", True),
        (Compares, True, "other_trial_12", True),
        (Compares, True, "other_trial_", False),
        (Compares, False, "other_trial", False),
        (BuiltIn, True, "other_trials", False),
    ],
)
def test_only_builtin_rules_that_take_other_trials_know_their_names(
    rule_class: type[Rule], builtin: bool, name: str, accepted: bool
) -> None:
    rule = loaded(rule_class, builtin)
    assert accepts(rule, name) is accepted
    assert other_trials(rule, {name: "/runs/a"}) == (("/runs/a",) if accepted else ())


def test_other_trials_of_a_rule_that_takes_none_are_refused() -> None:
    with pytest.raises(ParameterError, match="Unknown parameter 'other_trials'"):
        bind(loaded(BuiltIn, builtin=True), {"other_trials": "/runs/a"})


def test_a_builtin_rule_accepts_what_it_declares_and_no_clock() -> None:
    rule = load_builtin("StalledTrainingRule")
    assert [accepts(rule, name) for name in ("threshold", "clock", "literal")] == [
        True,
        False,
        True,
    ]
