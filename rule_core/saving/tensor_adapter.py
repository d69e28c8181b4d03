"""NumpyAccess: a hook's access to arrays; the base class of accesses to tensors of frameworks."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from numpy.typing import NDArray

from rule_core.exceptions import SMDebugTypeError
from rule_core.format.tensor_proto import NUMBERS
from rule_core.model import reductions
from rule_core.saving.step_writer import to_array

ReductionKey = tuple[str, bool]
Array = NDArray[Any]
TEXT: Final = "OUS"  # dtype kinds of strings


class NumpyAccess:
    """Shape, copy and reductions of numpy arrays, numbers, strings and lists of them.

    Its methods raise `SMDebugTypeError` for a tensor that the format does not support. The hook
    then skips that tensor with one warning.
    """

    _array = staticmethod(to_array)

    def shape(self, tensor: Any) -> tuple[int, ...]:
        """Return the shape; ``(1,)`` for numbers and strings."""
        return self._array(tensor).shape

    def nbytes(self, tensor: Any) -> int:
        """Return the size in bytes of a copy of the elements."""
        return int(self._array(tensor).nbytes)

    def copy(self, tensor: Any) -> Array:
        """Return a copy of the elements in host memory."""
        array = self._array(tensor)
        check(array)
        return array.copy()

    def reduce(
        self, tensor: Any, keys: Sequence[ReductionKey]
    ) -> Iterable[tuple[ReductionKey, Any]]:
        """Yield the reductions that exist, as scalars on the tensor's device, for `collect`."""
        array = self._array(tensor)
        check(array)
        if array.dtype.kind in TEXT:
            return
        if not array.size:
            keys = [key for key in keys if key[0] not in reductions.NEED_ELEMENTS]
        yield from reductions.compute_all(array, keys).items()

    def collect(self, scalars: Sequence[Any]) -> Sequence[Array]:
        """Return the results of `reduce` as host arrays, here with shape ``(1,)`` as in smdebug."""
        return [to_array(scalar) for scalar in scalars]


def is_text(value: object) -> bool:
    r"""Return whether a value is text that UTF-8 can encode, or UTF-8 bytes.

    >>> is_text("\u00df"), is_text(b"\xc3\x9f"), is_text("\ud800"), is_text(b"\xc3"), is_text(1)
    (True, True, False, False, False)
    """
    try:
        if isinstance(value, str):
            value.encode()
        elif isinstance(value, bytes):
            value.decode()
        else:
            return False
    except UnicodeError:
        return False
    return True


def check_names(*names: object) -> None:
    """Raise `SMDebugTypeError` if the format does not support one of the names."""
    for name in names:
        if not isinstance(name, str) or not is_text(name):
            raise SMDebugTypeError(f"Names must be text that UTF-8 can encode, got {name!r}.")


def check(array: Array) -> None:
    """Raise `SMDebugTypeError` if the format does not support the array."""
    if array.dtype.kind in TEXT:
        is_supported = array.ndim == 1 and all(map(is_text, array.tolist()))
    else:
        plain = array.dtype.newbyteorder("<") if array.dtype.kind in "iufc" else array.dtype
        is_supported = plain in NUMBERS
    if not is_supported:
        raise SMDebugTypeError(
            f"The trial format cannot hold {array.dtype} of shape {array.shape}."
        )
