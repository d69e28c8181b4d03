"""Makes constructor arguments of the text that a rule's parameters arrive as."""

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from rule_runner.errors import ParameterError, RuleFailedError
from rule_runner.wording import raised
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.params import did_you_mean, parse_params

if TYPE_CHECKING:
    from rule_runner.loader import LoadedRule
    from smdebug.rules.rule import Rule

# What `construct` gives, and the user cannot.
_FROM_RUNNER: Final = frozenset({"base_trial", "other_trials", "action_str"})
_ARGUMENT: Final = inspect.Parameter
_OTHERS: Final = "other_trials"
# What a built-in rule's other trials are called, now and in older documentation.
_OTHER_NAMES: Final = re.compile(r"other_trials?|other_trial_\d+")


@dataclass(frozen=True, slots=True)
class BoundRule:
    """A rule class with the arguments of one rule job.

    Parameters
    ----------
    loaded
        The rule class.
    arguments
        What its constructor gets by keyword, the trials and actions apart.
    parameters
        What the result shows: of a built-in rule every declared parameter with its value, of a
        custom rule the arguments.
    warnings
        A sentence for each parameter that was left out.
    """

    loaded: "LoadedRule"
    arguments: dict[str, object]
    parameters: dict[str, object]
    warnings: tuple[str, ...] = ()


def accepts(loaded: "LoadedRule", name: str) -> bool:
    """Say whether the rule names the parameter `name`: in its constructor, or declared if built in.

    Other trials of a built-in rule have several names.
    """
    if loaded.builtin:
        names = {param.name for param in loaded.rule_class.PARAMS}
        declared = not names.isdisjoint(loaded.rule_class.respelled({name: ""}))
        return declared or _names_other_trials(loaded, name)
    return name in _takes(loaded.rule_class)[0]


def _names_other_trials(loaded: "LoadedRule", name: str) -> bool:
    takes = loaded.builtin and _OTHERS in _takes(loaded.rule_class)[0]
    return takes and _OTHER_NAMES.fullmatch(name) is not None


def other_trials(loaded: "LoadedRule", raw: Mapping[str, str]) -> tuple[str, ...]:
    """Return the paths of other trials among the parameters of a built-in rule that takes some."""
    texts = [text for name, text in raw.items() if _names_other_trials(loaded, name)]
    paths = [path.strip() for text in texts for path in re.split("[,;]", text)]
    return tuple(path for path in paths if path not in {"", "None"})


def bind(loaded: "LoadedRule", raw: Mapping[str, str]) -> BoundRule:
    """Return the constructor arguments that the parameters `raw` stand for.

    A built-in rule declares its parameters, and they are parsed; the trials among them are opened
    by others. A custom rule gets its text unchanged.

    Raises
    ------
    ParameterError
        If a parameter is required and missing, has a wrong value, or is unknown to a built-in
        rule. What is unknown to a custom rule is left out with a warning.
    """
    try:
        if not loaded.builtin:
            return _bind_custom(loaded, raw)
        params = [
            replace(one, required=one.required and one.name != _OTHERS)
            for one in loaded.rule_class.PARAMS
        ]
        texts = {name: text for name, text in raw.items() if not _names_other_trials(loaded, name)}
        values = parse_params(params, loaded.rule_class.respelled(texts), loaded.name)
    except SMDebugValueError as err:
        raise ParameterError(str(err)) from err
    values.pop(_OTHERS, None)
    others = other_trials(loaded, raw)
    return BoundRule(loaded, values, {_OTHERS: others, **values} if others else dict(values))


def construct(
    bound: BoundRule, base_trial: object, other_trials: Sequence[object] = (), action_str: str = ""
) -> "Rule":
    """Return the rule of one rule job.

    The constructor gets the other trials, as a list, and the actions if it takes them and there
    are any; if it requires them, None and "" stand for none.

    Raises
    ------
    ParameterError
        If the constructor of a built-in rule refuses a value.
    RuleFailedError
        If the constructor raises anything else.
    """
    loaded = bound.loaded
    named, takes_any = _takes(loaded.rule_class)
    further: dict[str, Any] = {"other_trials": [*other_trials] or None, "action_str": action_str}
    for name, value in [*further.items()]:
        required = name in named and named[name].default is _ARGUMENT.empty
        if not (required or (value and (takes_any or name in named))):
            del further[name]
    try:
        return loaded.rule_class(base_trial, **bound.arguments, **further)
    except (Exception, SystemExit) as err:
        if loaded.builtin and isinstance(err, SMDebugValueError):
            raise ParameterError(str(err)) from err
        msg = raised(f"Rule {loaded.name!r}", err, "while it was constructed")
        raise RuleFailedError(msg) from err


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
    """Return what the constructor takes by name, and whether it takes any name besides.

    Its first positional argument is the base trial, whatever its name.
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
