"""ReductionConfig: what a hook saves of a tensor (reductions, values, shape)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Self

from rule_core.exceptions import SMDebugTypeError, SMDebugValueError
from rule_core.model.json_text import JsonText

REDUCTIONS: Final = ("min", "max", "mean", "std", "variance", "sum", "prod", "median")
NORMS: Final = ("l1", "l2")
_ABS: Final = "abs_"
_NORM: Final = "_norm"
_MEDIAN: Final = "median"
TRUTHS: Final = {
    **dict.fromkeys(("true", "1", "yes"), True),
    **dict.fromkeys(("false", "0", "no"), False),
}

Names = Iterable[str] | str | None


def flag(key: str, value: object) -> bool:
    """Return the truth value of a JSON value; `key` names it in the error.

    Raises
    ------
    SMDebugValueError
        If it is not true, false, 1, 0, yes or no, in any case.

    >>> flag("save_shape", True), flag("save_shape", "False"), flag("save_shape", 1)
    (True, False, True)
    """
    truth = TRUTHS.get(str(value).casefold())
    if truth is None:
        raise SMDebugValueError(f"{key} must be true or false, got {value!r}.")
    return truth


def split(names: object) -> list[str]:
    """Return the names in a list or in comma-separated text, without surrounding blanks.

    Raises
    ------
    TypeError
        If `names` is neither.

    >>> split("a, b,"), split(["a", "b"]), split(None)
    (['a', 'b'], ['a', 'b'], [])
    """
    if names is None:
        return []
    parts = names.split(",") if isinstance(names, str) else names
    if not isinstance(parts, Iterable):
        raise TypeError(names)
    texts = list(parts)
    if not all(isinstance(text, str) for text in texts):
        raise TypeError(names)
    return [text.strip() for text in texts if text.strip()]


@dataclass(slots=True, init=False)
class ReductionConfig(JsonText):
    """What to save of each tensor; nothing is the default.

    Attributes are the parameters: names as lists, which can be changed until the training starts.

    Parameters
    ----------
    reductions, abs_reductions
        Names from `REDUCTIONS`, of the values and of their magnitudes: a list, or comma-separated
        text.
    norms, abs_norms
        Names from `NORMS`.
    save_raw_tensor
        Whether to save the values.
    save_shape
        Whether to save the shape.

    Raises
    ------
    SMDebugValueError
        If a name is not among those, or a flag is not a `bool`.

    Examples
    --------
    >>> ReductionConfig(reductions=["min"], abs_norms="l1,l2").wanted
    (('min', False), ('l1', True), ('l2', True))
    """

    reductions: list[str]
    abs_reductions: list[str]
    norms: list[str]
    abs_norms: list[str]
    save_raw_tensor: bool
    save_shape: bool

    def __init__(
        self,
        reductions: Names = None,
        abs_reductions: Names = None,
        norms: Names = None,
        abs_norms: Names = None,
        save_raw_tensor: bool = False,
        save_shape: bool = False,
    ) -> None:
        self.reductions = reductions  # type: ignore[assignment]  # __setattr__ makes lists
        self.abs_reductions = abs_reductions  # type: ignore[assignment]
        self.norms = norms  # type: ignore[assignment]
        self.abs_norms = abs_norms  # type: ignore[assignment]
        self.save_raw_tensor = save_raw_tensor
        self.save_shape = save_shape

    def __setattr__(self, name: str, value: object) -> None:
        """Check and convert a value as the constructor does, and set the attribute."""
        if name in _ALLOWED:
            value = _among(_ALLOWED[name], name, value)
        elif name in _BOOLEANS and not isinstance(value, bool):
            raise SMDebugValueError(f"{name} must be True or False, got {value!r}.")
        object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Return whether both save the same; the order of names and repeated names do not count."""
        if not isinstance(other, ReductionConfig):
            return NotImplemented
        return self._comparable() == other._comparable()

    __hash__ = None  # type: ignore[assignment]  # lists change

    def _comparable(self) -> tuple[object, ...]:
        names = (frozenset(getattr(self, key)) for key in _ALLOWED)
        return (*names, self.save_raw_tensor, self.save_shape)

    @property
    def wanted(self) -> tuple[tuple[str, bool], ...]:
        """The reductions to save, as (operation, absolute), in file order.

        Raises
        ------
        SMDebugValueError
            If an unknown name was added to one of the lists.
        """
        checked = {key: _among(names, key, getattr(self, key)) for key, names in _ALLOWED.items()}
        plain = checked["reductions"] + checked["norms"]
        absolute = checked["abs_reductions"] + checked["abs_norms"]
        return tuple(
            dict.fromkeys([(name, False) for name in plain] + [(name, True) for name in absolute])
        )

    def to_json_dict(self) -> dict[str, Any]:
        """Return the JSON object for a collections file.

        Medians have a key of their own, which smdebug ignores: it rejects them as reductions.
        """
        names = [
            f"{_ABS if absolute else ''}{operation}{_NORM if operation in NORMS else ''}"
            for operation, absolute in self.wanted
        ]
        medians = [name for name in names if name.endswith(_MEDIAN)]
        return {
            "save_raw_tensor": self.save_raw_tensor,
            "reductions": ",".join(name for name in names if name not in medians),
            "save_shape": self.save_shape,
            **({"medians": ",".join(medians)} if medians else {}),
        }

    @classmethod
    def from_dict(cls, params: Mapping[str, Any]) -> Self:
        """Return the configuration for a JSON object such as `to_json_dict` returns.

        ``reductions`` lists all of them: norms may end in ``_norm``, and those of magnitudes start
        with ``abs_``. Flags may be text. Other keys are ignored.

        Raises
        ------
        SMDebugValueError
            If a name is unknown or a flag is not a truth value.
        """
        values: dict[str, Any] = {
            key: flag(key, params[key]) for key in _BOOLEANS if params.get(key) is not None
        }
        listed = (_texts(key, params.get(key)) for key in ("reductions", "medians"))
        for name in chain.from_iterable(listed):
            operation = name.removeprefix(_ABS)
            is_norm = operation in NORMS or operation.endswith(_NORM)
            kind = "norms" if is_norm else "reductions"
            key = kind if operation == name else _ABS + kind
            values.setdefault(key, []).append(operation.removesuffix(_NORM))
        return cls(**values)

    @classmethod
    def parse(cls, obj: object) -> "ReductionConfig":
        """Convert a user's configuration; None means a hook's default, the values only.

        Raises
        ------
        SMDebugTypeError
            If `obj` is neither None nor a ReductionConfig or dictionary.
        """
        if obj is None:
            return cls(save_raw_tensor=True)
        if isinstance(obj, ReductionConfig):
            return obj
        if isinstance(obj, Mapping):
            return cls.from_dict(obj)
        raise SMDebugTypeError(
            f"A reduction configuration must be a ReductionConfig or a dictionary, got {obj!r}."
        )


def _texts(key: str, names: object) -> list[str]:
    try:
        return split(names)
    except TypeError:
        raise SMDebugValueError(f"{key} must be a list of names, got {names!r}.") from None


_ALLOWED: Final = {
    "reductions": REDUCTIONS,
    "abs_reductions": REDUCTIONS,
    "norms": NORMS,
    "abs_norms": NORMS,
}
_BOOLEANS: Final = ("save_raw_tensor", "save_shape")


def _among(allowed: tuple[str, ...], key: str, names: object) -> list[str]:
    """Return the names, each once, in their order."""
    texts = _texts(key, names)
    for name in texts:
        if name not in allowed:
            raise SMDebugValueError(f"{key} must be among {', '.join(allowed)}, got {name!r}.")
    return list(dict.fromkeys(texts))
