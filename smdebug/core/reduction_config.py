"""ReductionConfig: what a hook saves of a tensor: which reductions, its values, its shape."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

REDUCTIONS: Final = ("min", "max", "mean", "std", "variance", "sum", "prod")
NORMS: Final = ("l1", "l2")
_ABS: Final = "abs_"
_NORM: Final = "_norm"
_FLAGS: Final = {
    **dict.fromkeys(("true", "1", "yes"), True),
    **dict.fromkeys(("false", "0", "no"), False),
}

Names = Iterable[str] | str | None


def flag(key: str, value: object) -> bool:
    """Return the truth value that `value`, of a JSON file, stands for; `key` is for the error.

    Raises
    ------
    SMDebugValueError
        If it is none of true, false, 1, 0, yes and no, in any case.

    >>> flag("save_shape", True), flag("save_shape", "False"), flag("save_shape", 1)
    (True, False, True)
    """
    found = _FLAGS.get(str(value).casefold())
    if found is None:
        msg = f"{key} must be true or false, got {value!r}."
        raise SMDebugValueError(msg)
    return found


def split(names: object) -> list[str]:
    """Return a list of texts, or one text of several with commas between, without blanks.

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
    found = list(parts)
    if not all(isinstance(one, str) for one in found):
        raise TypeError(names)
    return [one.strip() for one in found if one.strip()]


@dataclass(frozen=True, slots=True, init=False)
class ReductionConfig:
    """What to save of each tensor; nothing is the default.

    Parameters
    ----------
    reductions, abs_reductions
        From `REDUCTIONS`; of the values, and of their magnitudes. A list, or text with commas.
    norms, abs_norms
        From `NORMS`.
    save_raw_tensor
        Save the values too.
    save_shape
        Save the shape too.

    Raises
    ------
    SMDebugValueError
        If a name is not among those, or a flag is no `bool`.

    Examples
    --------
    >>> ReductionConfig(reductions=["min"], abs_norms="l1,l2").wanted
    (('min', False), ('l1', True), ('l2', True))
    """

    reductions: tuple[str, ...]
    abs_reductions: tuple[str, ...]
    norms: tuple[str, ...]
    abs_norms: tuple[str, ...]
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
        values: dict[str, Any] = {
            "reductions": _among(REDUCTIONS, "reductions", reductions),
            "abs_reductions": _among(REDUCTIONS, "abs_reductions", abs_reductions),
            "norms": _among(NORMS, "norms", norms),
            "abs_norms": _among(NORMS, "abs_norms", abs_norms),
            "save_raw_tensor": _boolean("save_raw_tensor", save_raw_tensor),
            "save_shape": _boolean("save_shape", save_shape),
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def wanted(self) -> tuple[tuple[str, bool], ...]:
        """The reductions to save, as (operation, of the magnitudes), in the order of a file."""
        plain, absolute = self.reductions + self.norms, self.abs_reductions + self.abs_norms
        return (*((one, False) for one in plain), *((one, True) for one in absolute))

    def to_json_dict(self) -> dict[str, Any]:
        """Return the object that stands in a collections file."""
        names = [
            f"{_ABS if absolute else ''}{operation}{_NORM if operation in NORMS else ''}"
            for operation, absolute in self.wanted
        ]
        return {
            "save_raw_tensor": self.save_raw_tensor,
            "reductions": ",".join(names),
            "save_shape": self.save_shape,
        }

    @classmethod
    def from_dict(cls, params: Mapping[str, Any]) -> Self:
        """Return the configuration of a JSON object such as `to_json_dict` gives.

        Its ``reductions`` are all in one: norms end in ``_norm``, those of magnitudes begin with
        ``abs_``. Flags may be text. Other keys are ignored.

        Raises
        ------
        SMDebugValueError
            If a name is unknown or a flag cannot be understood.
        """
        values: dict[str, Any] = {
            key: flag(key, params[key])
            for key in ("save_raw_tensor", "save_shape")
            if params.get(key) is not None
        }
        for name in _texts("reductions", params.get("reductions")):
            operation = name.removeprefix(_ABS)
            if operation in NORMS:
                msg = f"A norm among reductions must end in {_NORM!r}, got {name!r}."
                raise SMDebugValueError(msg)
            kind = "norms" if operation.endswith(_NORM) else "reductions"
            key = kind if operation == name else _ABS + kind
            values.setdefault(key, []).append(operation.removesuffix(_NORM))
        return cls(**values)

    @classmethod
    def parse(cls, obj: object) -> "ReductionConfig":
        """Return the configuration that a user gave; None stands for a hook's default, raw only.

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
        msg = f"A reduction configuration must be a ReductionConfig or a dictionary, got {obj!r}."
        raise SMDebugTypeError(msg)


def _texts(key: str, names: object) -> list[str]:
    try:
        return split(names)
    except TypeError:
        msg = f"{key} must be a list of names, got {names!r}."
        raise SMDebugValueError(msg) from None


def _among(allowed: tuple[str, ...], key: str, names: object) -> tuple[str, ...]:
    """Return the names, each once, in their order."""
    found = _texts(key, names)
    for name in found:
        if name not in allowed:
            msg = f"{key} must be among {', '.join(allowed)}, got {name!r}."
            raise SMDebugValueError(msg)
    return tuple(dict.fromkeys(found))


def _boolean(key: str, value: object) -> bool:
    if isinstance(value, bool):
        return value
    msg = f"{key} must be True or False, got {value!r}."
    raise SMDebugValueError(msg)
