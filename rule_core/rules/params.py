"""Parameters of rules: their types, limits and defaults, and the parsing of text."""

import difflib
import enum
import hashlib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Final

from rule_core.exceptions import SMDebugError, SMDebugValueError
from rule_core.model import patterns
from rule_core.model.reduction_config import TRUTHS

# The values of missing parameters in the service's string map, and from the old SDK's `str(None)`.
MAX_FILE_BYTES: Final = 64 << 20
_NOT_GIVEN: Final = frozenset({"", "None"})


@dataclass(frozen=True, slots=True)
class Param:
    """One declared parameter of a rule; the subclasses define its values.

    Parameters
    ----------
    name
        The name among the rule parameters and in the rule's constructor.
    meaning
        Its effect, for listings of the rule's parameters.
    default
        The value if none is given, parsed like any other; None means no default.
    unit
        The unit of the value; "" if it has none.
    required
        Whether a missing value is an error.

    Raises
    ------
    SMDebugValueError
        If `default` is not a valid value.
    """

    name: str
    meaning: str
    default: Any = None
    unit: str = ""
    required: bool = False

    type_name: ClassVar[str]
    noun: ClassVar[str]

    def __post_init__(self) -> None:
        if self.default is not None:
            object.__setattr__(self, "default", self._parse_given(self.default))

    @property
    def expected(self) -> str:
        """The requirement on the value, as the end of "must be ..."."""
        return f"{self.noun} {self.range_text}".rstrip()

    @property
    def range_text(self) -> str:
        """The limits in addition to the type, such as ``>= 0``; "" if there are none."""
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
        """Parse `raw`, which is text or a Python value.

        None, "" and "None" mean a missing value, which returns the default.

        Raises
        ------
        SMDebugValueError
            If `raw` is not a valid value, or a required value is missing.
        """
        if is_given(raw):
            return self._parse_given(raw)
        if self.required:
            raise SMDebugValueError(f"Parameter {self.name!r} is required: {self.expected}.")
        return self.default

    def _parse_given(self, raw: object) -> Any:
        try:
            return self._read(raw)
        except SMDebugValueError:
            raise
        except (ValueError, TypeError, ArithmeticError):
            raise SMDebugValueError(
                f"Parameter {self.name!r} must be {self.expected}, got {raw!r}."
            ) from None

    def _read(self, raw: object) -> Any:
        """Return the value of `raw`, or raise ValueError, TypeError or ArithmeticError."""
        raise NotImplementedError


def is_given(raw: object) -> bool:
    """Return whether a value is given: not None, and no text that stands for a missing value."""
    return raw is not None and not (isinstance(raw, str) and raw.strip() in _NOT_GIVEN)


def _bound_text(bound: float) -> str:
    return str(int(bound)) if float(bound).is_integer() else str(bound)


@dataclass(frozen=True, slots=True)
class FloatParam(Param):
    """A finite number; bounds are inclusive unless declared open."""

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
    """True or False; also ``1``, ``0``, ``yes`` and ``no``, in any case."""

    type_name: ClassVar[str] = "bool"
    noun: ClassVar[str] = "true, false, 1, 0, yes or no"

    def _read(self, raw: object) -> bool:
        truth = TRUTHS.get(str(raw).strip().lower())
        if truth is None:
            raise ValueError
        return truth


@dataclass(frozen=True, slots=True)
class ChoiceParam(Param):
    """One of several words, in any case; the value has the case of `choices`."""

    choices: tuple[str, ...] = ()

    type_name: ClassVar[str] = "choice"

    @property
    def range_text(self) -> str:
        """The words."""
        return ", ".join(self.choices)

    @property
    def expected(self) -> str:
        """The requirement on the value, as the end of "must be ..."."""
        return f"one of {', '.join(map(repr, self.choices))}"

    def _read(self, raw: object) -> str:
        word = raw.name if isinstance(raw, enum.Enum) else str(raw)
        by_folded = {choice.casefold(): choice for choice in self.choices}
        if word.strip().casefold() not in by_folded:
            raise ValueError
        return by_folded[word.strip().casefold()]


@dataclass(frozen=True, slots=True)
class TextParam(Param):
    """Text that a regular expression matches completely.

    Parameters
    ----------
    pattern
        The expression.
    allowed
        A description of the allowed values.
    """

    pattern: str = ".+"
    allowed: str = "text"

    type_name: ClassVar[str] = "text"

    @property
    def expected(self) -> str:
        """The requirement on the value, as the end of "must be ..."."""
        return self.allowed

    def _read(self, raw: object) -> str:
        if not isinstance(raw, str) or re.fullmatch(self.pattern, raw.strip()) is None:
            raise ValueError
        return raw.strip()


@dataclass(frozen=True, slots=True)
class FileParam(TextParam):
    """A file, by its path or its ``s3://`` address, whose content counts as part of the value."""

    allowed: str = "the path or s3:// address of a file"

    type_name: ClassVar[str] = "file"

    @staticmethod
    def digest(path: str) -> str:
        """Return a digest of the content of a file; "" if it cannot be read."""
        from rule_core.storage.uri import read_file

        try:
            return hashlib.sha256(read_file(path, MAX_FILE_BYTES)).hexdigest()
        except (OSError, ValueError, SMDebugError):
            return ""


@dataclass(frozen=True, slots=True)
class NamesParam(Param):
    """A tuple of names, given as comma-separated text or as a list."""

    type_name: ClassVar[str] = "names"
    noun: ClassVar[str] = "comma-separated names"

    def _read(self, raw: object) -> tuple[str, ...]:
        if not isinstance(raw, (str, list, tuple)):
            raise TypeError
        parts = patterns.flatten(raw.split(",") if isinstance(raw, str) else raw)
        names = tuple(self._checked(part.strip()) for part in parts if part.strip())
        if not names and (raw or self.required):
            raise ValueError
        return names

    def _checked(self, part: str) -> str:
        """Return one name, or raise an error if it is invalid."""
        return part


@dataclass(frozen=True, slots=True)
class PatternsParam(NamesParam):
    """A tuple of regular expressions to search for in names.

    In text a comma always separates patterns; patterns in a list may contain commas.

    Parameters
    ----------
    also
        Additional default patterns, for the tensor names of other frameworks. They do not apply if
        a value is given.
    collection
        An additional default collection; "" for none.
    """

    also: tuple[str, ...] = ()
    collection: str = ""

    type_name: ClassVar[str] = "patterns"
    noun: ClassVar[str] = "comma-separated regular expressions"

    def parse(self, raw: object) -> Any:
        """Parse patterns as `Param.parse`; the default includes `also`."""
        value = Param.parse(self, raw)
        return value if is_given(raw) or not self.also else (*value, *self.also)

    @property
    def whole_default(self) -> tuple[str, ...]:
        """The default including `also`."""
        return self.parse(None) or ()

    def _checked(self, part: str) -> str:
        try:
            patterns.matching((), [part])
        except (re.error, SMDebugValueError) as err:
            reason = str(err).rstrip(".")
            raise SMDebugValueError(
                f"Parameter {self.name!r} must be {self.expected}, got {part!r}: {reason}."
            ) from err
        return part


def nearest(name: str, names: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the one of `names` that is most similar to `name`, or None if none is close."""
    by_folded = {candidate.casefold(): candidate for candidate in names}
    close = difflib.get_close_matches(name.casefold(), by_folded, n=1, cutoff=cutoff)
    return by_folded[close[0]] if close else None


def did_you_mean(name: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the hint `` Did you mean 'x'?`` about an unknown name, or ""."""
    near = nearest(name, names, cutoff)
    return f" Did you mean {near!r}?" if near else ""


def parse_params(
    params: Iterable[Param], raw: Mapping[str, object], rule: str
) -> dict[str, object]:
    """Return the values of all `params`, with defaults for those missing in `raw`.

    `raw` holds the given values by name; `rule` is the rule's name, for error messages.

    Raises
    ------
    SMDebugValueError
        If a name is not declared, or a value is invalid.
    """
    by_name = {param.name: param for param in params}
    for name in raw:
        if name not in by_name:
            names = (
                f"Its parameters: {', '.join(map(repr, by_name))}."
                if by_name
                else "It has no parameters."
            )
            hint = did_you_mean(name, by_name)
            raise SMDebugValueError(f"Unknown parameter {name!r} of rule {rule!r}.{hint} {names}")
    return {name: param.parse(raw.get(name)) for name, param in by_name.items()}


def set_parameters(rule: Any, **raw: object) -> frozenset[str]:
    """Set the declared parameters of `rule` as attributes, and return the names of those given.

    Missing names and patterns become an empty tuple.

    Raises
    ------
    SMDebugValueError
        As `parse_params` does.
    """
    values = parse_params(rule.PARAMS, raw, rule.rule_name)
    for param in rule.PARAMS:
        value = values[param.name]
        setattr(rule, param.name, () if value is None and isinstance(param, NamesParam) else value)
    return frozenset(name for name, value in raw.items() if is_given(value))
