"""TensorAccess: what a hook asks of a framework's tensors; and how numpy's arrays answer."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from numpy.typing import NDArray

from smdebug.core import reductions
from smdebug.core.tensor_proto import NUMBERS
from smdebug.core.writer import to_array
from smdebug.exceptions import SMDebugTypeError, SMDebugValueError

Wanted = tuple[str, bool]
Array = NDArray[Any]
TEXT: Final = "OUS"  # numpy's kinds of strings


class TensorAccess(Protocol):
    """Shape, copy and reductions of a framework's tensors.

    Its methods raise `SMDebugTypeError` for a tensor that the format cannot hold: the hook then
    leaves that tensor out and says so once.
    """

    def shape(self, tensor: Any) -> tuple[int, ...]:
        """Return its shape."""
        ...

    def nbytes(self, tensor: Any) -> int:
        """Return the bytes that a copy of its elements takes."""
        ...

    def copy(self, tensor: Any) -> Array:
        """Return its elements in memory of this host that nobody else writes to."""
        ...

    def reduce(self, tensor: Any, wanted: Sequence[Wanted]) -> Iterable[tuple[Wanted, Any]]:
        """Yield its reductions, on its own device, for `collect`; without those that have none."""
        ...

    def collect(self, scalars: Sequence[Any]) -> Sequence[Array]:
        """Return what `reduce` gave as arrays of this host, all in one transfer."""
        ...


class NumpyAccess:
    """The answers for numpy's arrays, numbers, strings and lists of them."""

    def shape(self, tensor: Any) -> tuple[int, ...]:
        """Return its shape; numbers and strings are saved as ``(1,)``."""
        return to_array(tensor).shape

    def nbytes(self, tensor: Any) -> int:
        """Return the bytes of its elements."""
        return int(to_array(tensor).nbytes)

    def copy(self, tensor: Any) -> Array:
        """Return a copy of the elements."""
        array = to_array(tensor)
        check(array)
        return array.copy()

    def reduce(self, tensor: Any, wanted: Sequence[Wanted]) -> Iterable[tuple[Wanted, Any]]:
        """Yield reductions; strings have none."""
        array = to_array(tensor)
        if array.dtype.kind in TEXT:
            return
        try:
            yield from reductions.compute_all(array, wanted).items()
        except SMDebugValueError:  # some need an element: ask one by one
            for one in wanted:
                if array.size or one[0] not in reductions.NEED_ELEMENTS:
                    yield one, reductions.compute(array, *one)

    def collect(self, scalars: Sequence[Any]) -> Sequence[Array]:
        """Return the scalars in the shape that smdebug gives them, ``(1,)``."""
        return [to_array(one) for one in scalars]


def check(array: Array) -> None:
    """Raise `SMDebugTypeError` if the format cannot hold the array."""
    if array.dtype.kind in TEXT:
        good = array.ndim == 1 and all(isinstance(one, (str, bytes)) for one in array.tolist())
    else:
        plain = array.dtype.newbyteorder("<") if array.dtype.kind in "iufc" else array.dtype
        good = plain in NUMBERS
    if not good:
        msg = f"The trial format cannot hold {array.dtype} of shape {array.shape}."
        raise SMDebugTypeError(msg)
