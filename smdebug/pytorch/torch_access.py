"""TorchAccess: shape, copy and reductions of PyTorch's tensors, on their own device."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch

from smdebug.core.reductions import NEED_ELEMENTS
from smdebug.core.tensor_access import Array, NumpyAccess, Wanted
from smdebug.exceptions import SMDebugTypeError
from smdebug.pytorch.host_reductions import ON_HOST, reduced_on_host
from smdebug.pytorch.modules import is_transformed

MOST_DENSE: Final = 1 << 28  # bytes that a sparse tensor may take when it is written out
# Types that numpy has not, and those that hold their values without loss.
_WIDER: Final = {
    torch.bfloat16: torch.float32,
    torch.complex32: torch.complex64,
    **{
        getattr(torch, name): torch.float32
        for name in dir(torch)
        if name.startswith("float8_") and isinstance(getattr(torch, name), torch.dtype)
    },
}
# Types that PyTorch does not reduce, or not well, and those that hold their values.
_COMPUTED_AS: Final = {
    torch.bool: torch.uint8,
    torch.float16: torch.float32,
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
    torch.uint64: torch.float64,
}
_NUMPY: Final = NumpyAccess()
_ORDINARY: Final = frozenset({torch.Tensor, torch.nn.Parameter})


class TorchAccess:
    """The answers for PyTorch's tensors; what is none is left to numpy.

    A sharded tensor is that of this worker. Sparse and quantized ones are written out, bfloat16 and
    8-bit floats as float32, which holds them exactly.
    """

    def shape(self, tensor: Any) -> tuple[int, ...]:
        """Return its shape."""
        if not isinstance(tensor, torch.Tensor):
            return _NUMPY.shape(tensor)
        with _said():
            return tuple(_shaped(_local(tensor)).shape)

    def nbytes(self, tensor: Any) -> int:
        """Return the bytes that its elements take on this host."""
        if not isinstance(tensor, torch.Tensor):
            return _NUMPY.nbytes(tensor)
        with _said():
            tensor = _local(tensor)
            return int(tensor.numel()) * int(_WIDER.get(tensor.dtype, tensor.dtype).itemsize)

    def copy(self, tensor: Any) -> Array:
        """Return its elements, copied to this host."""
        if not isinstance(tensor, torch.Tensor):
            return _NUMPY.copy(tensor)
        with _said():
            own = _local(tensor)
            host = _plain(own).cpu()
            array: Array = (host.clone() if host is own else host).numpy()
        return array

    def reduce(self, tensor: Any, wanted: Sequence[Wanted]) -> Iterable[tuple[Wanted, Any]]:
        """Return its reductions, computed on its own device."""
        if not isinstance(tensor, torch.Tensor):
            return _NUMPY.reduce(tensor, wanted)
        if _is_ordinary(tensor):
            return reduced_on_host(tensor.detach(), wanted)
        with _said():
            plain = _plain(_local(tensor))
            if plain.is_complex():
                # There is no order among complex numbers; of their magnitudes there is.
                wanted = [one for one in wanted if one[1]]
                plain = plain.abs()
            if not plain.numel():
                wanted = [one for one in wanted if one[0] not in NEED_ELEMENTS]
            return list(_reduced(plain, wanted))

    def collect(self, scalars: Sequence[Any]) -> Sequence[Array]:
        """Return scalars as arrays of no dimension: one transfer for each device and type."""
        found: list[Any] = [None] * len(scalars)
        groups: dict[tuple[Any, Any], list[int]] = {}
        for at, one in enumerate(scalars):
            if isinstance(one, torch.Tensor):
                groups.setdefault((one.device, one.dtype), []).append(at)
            else:
                found[at] = one if type(one) is np.ndarray else np.asarray(one)
        for places in groups.values():
            together = torch.stack([scalars[at] for at in places]).cpu().numpy()
            for at, one in zip(places, together, strict=True):
                found[at] = np.asarray(one)
        return found


@contextmanager
def _said() -> Iterator[None]:
    """Have PyTorch's refusals read as those of the format: the tensor is left out, nothing else."""
    try:
        yield
    except SMDebugTypeError:
        raise
    except (RuntimeError, TypeError, ValueError) as err:
        reason = (str(err) or type(err).__name__).splitlines()[0]
        msg = reason.rstrip(".") + "."
        raise SMDebugTypeError(msg) from err


def _is_ordinary(tensor: Any) -> bool:
    """Say whether a tensor is one of those that nearly all are: plain numbers of this host."""
    return (
        type(tensor) in _ORDINARY
        and tensor.is_cpu
        and tensor.dtype in ON_HOST
        and tensor.layout is torch.strided
        and not (tensor.is_nested or is_transformed(tensor) or tensor.is_neg())
        and tensor.numel() > 0
    )


def _local(tensor: Any) -> Any:
    """Return this worker's shard of a distributed tensor, or the tensor."""
    tensor = tensor.detach()
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def _shaped(tensor: Any) -> Any:
    """Return a tensor that has a shape and values."""
    if is_transformed(tensor):
        msg = "Inside torch.func it stands for values that are not computed one by one."
        raise SMDebugTypeError(msg)
    if tensor.is_nested:
        msg = "Nested tensors have no shape that the trial format could hold."
        raise SMDebugTypeError(msg)
    return tensor


def _plain(tensor: Any) -> Any:
    """Return a dense tensor of numbers that numpy knows, of the same values."""
    tensor = _shaped(tensor)
    if tensor.device.type == "meta":
        msg = "It is on device 'meta', where tensors have no elements."
        raise SMDebugTypeError(msg)
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        if tensor.numel() * tensor.dtype.itemsize > MOST_DENSE:
            msg = f"Written out, the sparse tensor would take more than {MOST_DENSE} bytes."
            raise SMDebugTypeError(msg)
        tensor = tensor.to_dense()
    wider = _WIDER.get(tensor.dtype)
    return (tensor if wider is None else tensor.to(wider)).resolve_conj().resolve_neg()


def _reduced(plain: Any, wanted: Sequence[Wanted]) -> Iterator[tuple[Wanted, Any]]:
    """Yield reductions; sums of half precision in single precision, of integers in double."""
    floating = plain.is_floating_point()
    plain = plain.to(_COMPUTED_AS.get(plain.dtype, plain.dtype))
    if plain.device.type == "cpu" and plain.dtype in ON_HOST and plain.numel():
        yield from reduced_on_host(plain, wanted)
        return
    numbers = plain if floating else plain.to(torch.float64)
    known: dict[str, Any] = {}
    for operation, absolute in wanted:
        if operation in {"min", "max"} and not absolute:
            if not known:
                low, high = torch.aminmax(plain)
                known = {"min": low, "max": high}
            yield (operation, absolute), known[operation]
        elif operation in _OF_MAGNITUDES and (absolute or operation in {"l1", "l2"}):
            yield (operation, absolute), _OF_MAGNITUDES[operation](numbers)
        elif operation in {"sum", "prod"} and not floating:
            yield (operation, absolute), _OF_VALUES[operation](plain.abs() if absolute else plain)
        else:
            yield (
                (operation, absolute),
                _OF_VALUES[operation](numbers.abs() if absolute else numbers),
            )


_norm = torch.linalg.vector_norm
# One pass without a copy of the magnitudes.
_OF_MAGNITUDES: Final = {
    "min": lambda numbers: _norm(numbers, -torch.inf),
    "max": lambda numbers: _norm(numbers, torch.inf),
    "mean": lambda numbers: _norm(numbers, 1) / numbers.numel(),
    "sum": lambda numbers: _norm(numbers, 1),
    "l1": lambda numbers: _norm(numbers, 1),
    "l2": lambda numbers: _norm(numbers, 2),
}
_OF_VALUES: Final = {
    "mean": torch.mean,
    "sum": torch.sum,
    "prod": torch.prod,
    "std": lambda numbers: torch.var(numbers, correction=0).sqrt(),
    "variance": lambda numbers: torch.var(numbers, correction=0),
}
