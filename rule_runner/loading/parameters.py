"""Converts the text of rule parameters to constructor arguments, and constructs rules."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rule_core.exceptions import SMDebugValueError
from rule_core.rules.params import did_you_mean, is_given, parse_params
from rule_core.trials.refresh import no_refresh
from rule_runner.errors import ParameterError, RuleFailedError, translated, user_code

if TYPE_CHECKING:
    from rule_core.rules.requirements import RequiredInput
    from rule_core.rules.rule import Rule
    from rule_runner.loading.loader import LoadedRule
    from rule_runner.loading.trials import AnyTrial

# Arguments that `construct` supplies, and users cannot set.
_FROM_RUNNER: Final = frozenset({"base_trial", "other_trials", "action_str"})
_ARGUMENT: Final = inspect.Parameter
_OTHERS: Final = "other_trials"
# Names of the parameter for other trials, including those of older documentation.
_OTHER_NAMES: Final = re.compile(r"other_trials?|other_trial_\d+")


@dataclass(frozen=True, slots=True)
class BoundRule:
    """A rule class with the arguments of one rule job.

    Parameters
    ----------
    loaded
        The rule class.
    arguments
        Keyword arguments of its constructor, without trials and actions. A built-in rule
        gets those that were given, as it tells them from its defaults.
    parameters
        Parameters that the result shows: every declared parameter of a built-in rule, or the
        arguments of a custom rule.
    warnings
        A sentence for each parameter that was ignored.
    """

    loaded: "LoadedRule"
    arguments: dict[str, object]
    parameters: dict[str, object]
    warnings: tuple[str, ...] = ()


def accepts(loaded: "LoadedRule", name: str) -> bool:
    """Return whether a built-in rule declares a parameter, or a custom rule's constructor names it.

    The parameter for other trials of a built-in rule has several names.
    """
    if loaded.declares_parameters:
        names = {param.name for param in loaded.rule_class.PARAMS}
        declared = not names.isdisjoint(loaded.rule_class.rename_parameters({name: ""}))
        return declared or _names_other_trials(loaded, name)
    return name in _takes(loaded.rule_class)[0]


def _names_other_trials(loaded: "LoadedRule", name: str) -> bool:
    takes = loaded.declares_parameters and _OTHERS in _takes(loaded.rule_class)[0]
    return takes and _OTHER_NAMES.fullmatch(name) is not None


def other_trials(loaded: "LoadedRule", raw: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths of other trials among the parameters of a built-in rule that takes some."""
    texts = [text for name, text in raw.items() if _names_other_trials(loaded, name)]
    paths = [path.strip() for text in texts for path in re.split("[,;]", text)]
    return tuple(path for path in paths if path not in {"", "None"})


def bind(loaded: "LoadedRule", raw: Mapping[str, str]) -> BoundRule:
    """Return the constructor arguments for the parameters `raw`.

    The declared parameters of a built-in rule are parsed, except for trials, which the caller
    opens. A custom rule receives its parameters as text.

    Raises
    ------
    ParameterError
        If a required parameter is missing, has a wrong value, or is unknown to a built-in rule.
        Parameters that a custom rule does not accept are ignored with a warning.
    """
    if not loaded.declares_parameters:
        return _bind_custom(loaded, raw)
    with translated(ParameterError, SMDebugValueError):
        params = [
            replace(param, required=param.required and param.name != _OTHERS)
            for param in loaded.rule_class.PARAMS
        ]
        texts = {name: text for name, text in raw.items() if not _names_other_trials(loaded, name)}
        renamed = loaded.rule_class.rename_parameters(texts)
        values = parse_params(params, renamed, loaded.name)
    values.pop(_OTHERS, None)
    given = {name: value for name, value in values.items() if is_given(renamed.get(name))}
    arguments = given if loaded.builtin else dict(values)
    paths = other_trials(loaded, raw)
    return BoundRule(loaded, arguments, {_OTHERS: paths, **values} if paths else values)


def construct(
    bound: BoundRule, base_trial: object, other_trials: Sequence[object] = (), action_str: str = ""
) -> "Rule":
    """Return the rule of one rule job.

    The constructor receives the list of other trials, and the actions, if it accepts them and
    they are not empty. If it requires them, None and "" stand for empty ones.

    Raises
    ------
    ParameterError
        If the constructor of a built-in rule rejects a value.
    RuleFailedError
        If the constructor raises anything else.
    """
    loaded = bound.loaded
    named, takes_any = _takes(loaded.rule_class)
    optional: dict[str, Any] = {"other_trials": [*other_trials] or None, "action_str": action_str}
    for name, value in [*optional.items()]:
        required = name in named and named[name].default is _ARGUMENT.empty
        if not (required or (value and (takes_any or name in named))):
            del optional[name]
    with user_code(RuleFailedError, f"Rule {loaded.name!r}", lambda _: "while it was constructed"):
        try:
            return loaded.rule_class(base_trial, **bound.arguments, **optional)
        except SMDebugValueError as err:
            if loaded.declares_parameters:
                raise ParameterError(str(err)) from err
            raise


def lacking(loaded: "LoadedRule", other_trials: "Sequence[str]") -> str:
    """Return a sentence on the parameter that a rule lacks; "" if it can be constructed."""
    try:
        construct(bind(loaded, {}), None, [None for _ in other_trials])
    except ParameterError as err:
        return str(err)
    except RuleFailedError:  # it needs its trials, which are not open yet
        return ""
    return ""


def required_inputs(bound: BoundRule) -> "Sequence[RequiredInput]":
    """Return the inputs that a built-in rule requires; custom rules declare none.

    Raises
    ------
    ParameterError
        As `construct` does.
    """
    loaded = bound.loaded
    if not loaded.builtin:
        return ()
    placeholders = [None for param in loaded.rule_class.PARAMS if param.name == _OTHERS]
    return construct(bound, None, placeholders).required_inputs


def missing_inputs(bound: BoundRule, trial: "AnyTrial") -> tuple[str, ...]:
    """Describe the required inputs of a built-in rule that a trial lacks, without refreshing it.

    Raises
    ------
    ParameterError
        As `construct` does.
    """
    view = trial.share()
    with no_refresh(view):
        return tuple(
            str(required) for required in required_inputs(bound) if not required.is_in(view)
        )


def _bind_custom(loaded: "LoadedRule", raw: Mapping[str, str]) -> BoundRule:
    named, takes_any = _takes(loaded.rule_class)
    names = [name for name in named if name not in _FROM_RUNNER]
    for name in names:
        if named[name].default is _ARGUMENT.empty and name not in raw:
            msg = f"Rule {loaded.name!r} needs parameter {name!r}, which was not given."
            raise ParameterError(msg)
    arguments: dict[str, object] = {}
    warnings: list[str] = []
    for name, text in raw.items():
        if name in names or (takes_any and name not in _FROM_RUNNER):
            arguments[name] = text
        else:
            hint = did_you_mean(name, names)
            warnings.append(f"Rule {loaded.name!r} has no parameter {name!r}: left out.{hint}")
    return BoundRule(loaded, arguments, dict(arguments), tuple(warnings))


def _takes(rule_class: type["Rule"]) -> tuple[dict[str, inspect.Parameter], bool]:
    """Return the named arguments of the constructor, and whether it also accepts any other name.

    The first positional argument is the base trial, regardless of its name.
    """
    arguments = [*inspect.signature(rule_class).parameters.values()]
    if arguments and arguments[0].kind in (
        _ARGUMENT.POSITIONAL_ONLY,
        _ARGUMENT.POSITIONAL_OR_KEYWORD,
    ):
        del arguments[0]
    by_name = (_ARGUMENT.POSITIONAL_OR_KEYWORD, _ARGUMENT.KEYWORD_ONLY)
    named = {argument.name: argument for argument in arguments if argument.kind in by_name}
    return named, any(argument.kind is _ARGUMENT.VAR_KEYWORD for argument in arguments)
