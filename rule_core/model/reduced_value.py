"""reduced_value: one reduction of a tensor as a numpy scalar that can be indexed like an array."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray


def _element(scalar: Any, index: Any) -> Any:
    """Return the scalar for its only element, otherwise what an array of shape (1,) returns."""
    return scalar if index in (0, -1) else np.asarray(scalar).reshape(1)[index]


_NAMES: Final = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
# numpy finds the data type of a scalar by its first base class: a second one would break it.
_INDEXED_TYPES: Final[dict[type, type]] = {
    getattr(np, name): type(name, (getattr(np, name),), {"__slots__": (), "__getitem__": _element})
    for name in _NAMES
}


def reduced_value(value: NDArray[Any] | np.generic) -> Any:
    """Return a computed scalar, or a saved array of one element, as one kind of scalar.

    It is a numpy scalar: it can be hashed, formatted and compared. Its only element has index 0, as
    documented. Values of other types, such as booleans, are plain numpy scalars.

    >>> mean = reduced_value(np.array([2.5], np.float32))
    >>> float(mean), float(mean[0]), f"{mean:.2f}", bool(mean < 3), np.array([mean, mean]).shape
    (2.5, 2.5, '2.50', True, (2,))
    """
    if value.size != 1:  # a damaged trial
        return value
    scalar = value if isinstance(value, np.generic) else value.reshape(())[()]
    indexed_type = _INDEXED_TYPES.get(type(scalar))
    return scalar if indexed_type is None else indexed_type(scalar)
