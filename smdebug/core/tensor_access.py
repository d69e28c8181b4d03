"""TensorAccess: what a hook asks of a framework's tensors; and how numpy's arrays answer."""

from collections.abc import Iterable, Sequence
from typing import Any, Final, Protocol

from numpy.typing import NDArray

from smdebug.core import reductions
from smdebug.core.step_draft import to_array
from smdebug.core.tensor_proto import NUMBERS
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
        check(array)
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


def is_text(value: object) -> bool:
    r"""Say whether a value is text that UTF-8 can hold, or UTF-8 itself.

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
    """Raise `SMDebugTypeError` if the format cannot hold one of the names."""
    for name in names:
        if not isinstance(name, str) or not is_text(name):
            msg = f"Names must be text that UTF-8 can hold, got {name!r}."
            raise SMDebugTypeError(msg)


def check(array: Array) -> None:
    """Raise `SMDebugTypeError` if the format cannot hold the array."""
    if array.dtype.kind in TEXT:
        good = array.ndim == 1 and all(map(is_text, array.tolist()))
    else:
        plain = array.dtype.newbyteorder("<") if array.dtype.kind in "iufc" else array.dtype
        good = plain in NUMBERS
    if not good:
        msg = f"The trial format cannot hold {array.dtype} of shape {array.shape}."
        raise SMDebugTypeError(msg)
