"""The parameters that a rule declares: what values each takes, and how text becomes one."""

import difflib
import enum
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Final

from smdebug.core import patterns
from smdebug.exceptions import SMDebugValueError

# What the string map of the service, and the old SDK's `str(None)`, hold for "not given".
_NOT_GIVEN: Final = frozenset({"", "None"})
_TRUE: Final = frozenset({"true", "1", "yes"})
_FALSE: Final = frozenset({"false", "0", "no"})


@dataclass(frozen=True, slots=True)
class Param:
    """One declared parameter of a rule; the subclasses say which values it takes.

    Parameters
    ----------
    name
        The name among the rule parameters and in the rule's constructor.
    meaning
        What it does, for whoever lists the rule's parameters.
    default
        The value when none is given, parsed like any other; None: there is none.
    unit
        What the value counts or measures; "" if it has none.
    required
        Giving none is an error.

    Raises
    ------
    SMDebugValueError
        If `default` is not a value that the parameter takes.
    """

    name: str
    meaning: str
    default: Any = None
    unit: str = ""
    required: bool = False

    type_name: ClassVar[str]

    def __post_init__(self) -> None:
        if self.default is not None:
            object.__setattr__(self, "default", self._parse_given(self.default))

    @property
    def expected(self) -> str:
        """What the value must be, as the end of "must be ..."."""
        raise NotImplementedError

    @property
    def range_text(self) -> str:
        """The limits that the type alone does not tell, such as ``>= 0``; "" if it tells all."""
        return ""

    @property
    def default_text(self) -> str:
        """The default as a user would write it, or ``required``, or ``none``."""
        if self.required:
            return "required"
        if self.default in (None, ()):
            return "none"
        return ",".join(self.default) if isinstance(self.default, tuple) else str(self.default)

    def parse(self, raw: object) -> Any:
        """Return the value that `raw`, text or a Python value, stands for.

        None, "" and "None" mean that no value is given, which makes it the default.

        Raises
        ------
        SMDebugValueError
            If `raw` stands for no value of this parameter, or one is required and not given.
        """
        if raw is not None and not (isinstance(raw, str) and raw.strip() in _NOT_GIVEN):
            return self._parse_given(raw)
        if self.required:
            msg = f"Parameter {self.name!r} must be given: {self.expected}."
            raise SMDebugValueError(msg)
        return self.default

    def _parse_given(self, raw: object) -> Any:
        try:
            return self._read(raw)
        except SMDebugValueError:
            raise
        except (ValueError, TypeError, ArithmeticError):
            msg = f"Parameter {self.name!r} must be {self.expected}, got {raw!r}."
            raise SMDebugValueError(msg) from None

    def _read(self, raw: object) -> Any:
        """Return the value of `raw`; an error about its value or type refuses it."""
        raise NotImplementedError


def _bound_text(bound: float) -> str:
    return str(int(bound)) if float(bound).is_integer() else str(bound)


@dataclass(frozen=True, slots=True)
class FloatParam(Param):
    """A finite number; each bound is closed unless it is said to be open."""

    minimum: float | None = None
    maximum: float | None = None
    minimum_open: bool = False
    maximum_open: bool = False

    type_name: ClassVar[str] = "float"
    noun: ClassVar[str] = "a finite number"

    @property
    def range_text(self) -> str:
        """The range, such as ``>= 0``, ``< 1`` or ``in [0, 1)``; "" without bounds."""
        low = "" if self.minimum is None else _bound_text(self.minimum)
        high = "" if self.maximum is None else _bound_text(self.maximum)
        if low and high:
            return f"in {'[('[self.minimum_open]}{low}, {high}{'])'[self.maximum_open]}"
        if low:
            return f"{'>' if self.minimum_open else '>='} {low}"
        return high and f"{'<' if self.maximum_open else '<='} {high}"

    @property
    def expected(self) -> str:
        """What the value must be, as the end of "must be ..."."""
        return f"{self.noun} {self.range_text}".rstrip()

    def _read(self, raw: object) -> float:
        if isinstance(raw, bool) or not isinstance(raw, (str, Real)):
            raise TypeError
        value = self._number(raw)
        low = -math.inf if self.minimum is None else self.minimum
        high = math.inf if self.maximum is None else self.maximum
        above = value > low if self.minimum_open else value >= low
        below = value < high if self.maximum_open else value <= high
        if not (math.isfinite(value) and above and below):
            raise ValueError
        return value

    def _number(self, raw: str | Real) -> float:
        return float(raw)


@dataclass(frozen=True, slots=True)
class IntParam(FloatParam):
    """A whole number, written ``10``, ``10.0`` or ``1e1``."""

    type_name: ClassVar[str] = "int"
    noun: ClassVar[str] = "a whole number"

    def _number(self, raw: str | Real) -> int:
        try:
            exact: Any = int(raw) if isinstance(raw, str) else raw
        except ValueError:
            exact = float(raw)
        if exact != int(exact):
            raise ValueError
        return int(exact)


@dataclass(frozen=True, slots=True)
class BoolParam(Param):
    """True or False; ``1``, ``0``, ``yes`` and ``no`` too, in upper or lower case."""

    type_name: ClassVar[str] = "bool"

    @property
    def expected(self) -> str:
        """What the value must be, as the end of "must be ..."."""
        return "true, false, 1, 0, yes or no"

    def _read(self, raw: object) -> bool:
        word = str(raw).strip().lower()
        if word not in _TRUE | _FALSE:
            raise ValueError
        return word in _TRUE


@dataclass(frozen=True, slots=True)
class ChoiceParam(Param):
    """One of some words, in upper or lower case; the value has the case of `choices`."""

    choices: tuple[str, ...] = ()

    type_name: ClassVar[str] = "choice"

    @property
    def range_text(self) -> str:
        """The words."""
        return ", ".join(self.choices)

    @property
    def expected(self) -> str:
        """What the value must be, as the end of "must be ..."."""
        return f"one of {', '.join(map(repr, self.choices))}"

    def _read(self, raw: object) -> str:
        word = raw.name if isinstance(raw, enum.Enum) else str(raw)
        known = {choice.casefold(): choice for choice in self.choices}
        if word.strip().casefold() not in known:
            raise ValueError
        return known[word.strip().casefold()]


@dataclass(frozen=True, slots=True)
class TextParam(Param):
    """One word that a regular expression matches as a whole.

    Parameters
    ----------
    pattern
        The expression.
    allowed
        What it allows, in words.
    """

    pattern: str = ".+"
    allowed: str = "text"

    type_name: ClassVar[str] = "text"

    @property
    def expected(self) -> str:
        """What the value must be, as the end of "must be ..."."""
        return self.allowed

    def _read(self, raw: object) -> str:
        if not isinstance(raw, str) or re.fullmatch(self.pattern, raw.strip()) is None:
            raise ValueError
        return raw.strip()


@dataclass(frozen=True, slots=True)
class NamesParam(Param):
    """Names in a tuple, given as text with commas between them, or as a list."""

    type_name: ClassVar[str] = "names"

    @property
    def expected(self) -> str:
        """What the value must be, as the end of "must be ..."."""
        return "names with commas between them"

    def _read(self, raw: object) -> tuple[str, ...]:
        if not isinstance(raw, (str, list, tuple)):
            raise TypeError
        parts = patterns.flatten(raw.split(",") if isinstance(raw, str) else raw)
        names = tuple(self._checked(part.strip()) for part in parts if part.strip())
        if not names and (raw or self.required):
            raise ValueError
        return names

    def _checked(self, part: str) -> str:
        """Return one name; an error refuses it."""
        return part


@dataclass(frozen=True, slots=True)
class PatternsParam(NamesParam):
    """Regular expressions in a tuple, to be searched in names.

    In text a comma always begins the next pattern; a list holds patterns with commas.

    Parameters
    ----------
    also
        Patterns that belong to the default: what other frameworks call the tensors that the
        documented one is written for. A pattern that is given stands for itself.
    collection
        The collection that belongs to the default likewise; "" for none.
    """

    also: tuple[str, ...] = ()
    collection: str = ""

    type_name: ClassVar[str] = "patterns"

    def parse(self, raw: object) -> Any:
        """Return patterns as `Param.parse` does; the default ones include `also`."""
        value = Param.parse(self, raw)
        given = raw is not None and not (isinstance(raw, str) and raw.strip() in _NOT_GIVEN)
        return value if given or not self.also else (*value, *self.also)

    @property
    def whole_default(self) -> tuple[str, ...]:
        """The default with `also`: what is searched for where nothing is given."""
        return self.parse(None) or ()

    @property
    def expected(self) -> str:
        """What the value must be, as the end of "must be ..."."""
        return "regular expressions with commas between them"

    def _checked(self, part: str) -> str:
        try:
            patterns.matching((), [part])
        except (re.error, SMDebugValueError) as err:
            reason = str(err).rstrip(".")
            msg = f"Parameter {self.name!r} must be {self.expected}, got {part!r}: {reason}."
            raise SMDebugValueError(msg) from err
        return part


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the one of `names` that `name` most probably stands for, or None."""
    spelled = {known.casefold(): known for known in names}
    close = difflib.get_close_matches(name.casefold(), spelled, n=1)
    return spelled[close[0]] if close else None


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return `` Did you mean 'x'?`` for the end of a sentence about an unknown name, or ""."""
    near = nearest(name, names)
    return f" Did you mean {near!r}?" if near else ""


def parse_params(
    params: Iterable[Param], raw: Mapping[str, object], rule: str
) -> dict[str, object]:
    """Return the value of every one of `params`, the defaults of those not in `raw` included.

    `raw` is what was given, by name; `rule` is the rule's name, for the errors.

    Raises
    ------
    SMDebugValueError
        If a name is not declared, or a value is not what its parameter takes.
    """
    known = {param.name: param for param in params}
    for name in raw:
        if name not in known:
            names = f"Its parameters: {', '.join(map(repr, known))}." if known else "It takes none."
            hint = did_you_mean(name, known)
            msg = f"Unknown parameter {name!r} of rule {rule!r}.{hint} {names}"
            raise SMDebugValueError(msg)
    return {name: param.parse(raw.get(name)) for name, param in known.items()}


def set_parameters(rule: Any, **given: object) -> None:
    """Set each of the parameters that `rule` declares, as an attribute of its name.

    Names and patterns that are not given are an empty tuple.

    Raises
    ------
    SMDebugValueError
        As `parse_params` does.
    """
    values = parse_params(rule.PARAMS, given, rule.rule_name)
    for param in rule.PARAMS:
        value = values[param.name]
        setattr(rule, param.name, () if value is None and isinstance(param, NamesParam) else value)
