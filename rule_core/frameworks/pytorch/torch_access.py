"""TorchAccess: shape, copy and reductions of PyTorch tensors on their device."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
import torch

from rule_core.exceptions import SMDebugTypeError
from rule_core.frameworks.pytorch.host_reductions import ON_HOST, reduced_on_host
from rule_core.frameworks.pytorch.modules import is_transformed
from rule_core.model.reductions import NEED_ELEMENTS
from rule_core.saving.tensor_adapter import Array, NumpyAccess, ReductionKey

MOST_DENSE: Final = 1 << 28  # bytes of a sparse tensor converted to a dense one
# Types unknown to numpy, with types that represent their values exactly.
_WIDER: Final = {
    torch.bfloat16: torch.float32,
    torch.complex32: torch.complex64,
    **{
        getattr(torch, name): torch.float32
        for name in dir(torch)
        if name.startswith("float8_") and isinstance(getattr(torch, name), torch.dtype)
    },
}
# Types that PyTorch cannot reduce accurately, with types that represent their values.
_COMPUTED_AS: Final = {
    torch.bool: torch.uint8,
    torch.float16: torch.float32,
    torch.uint16: torch.int32,
    torch.uint32: torch.int64,
    torch.uint64: torch.float64,
}
_ORDINARY: Final = frozenset({torch.Tensor, torch.nn.Parameter})


class TorchAccess(NumpyAccess):
    """Access to PyTorch tensors; other values are left to numpy.

    Of a distributed tensor, this worker's shard is saved. Sparse and quantized tensors are saved as
    dense ones, bfloat16 and 8-bit floats as float32, which represents them exactly.
    """

    def shape(self, tensor: Any) -> tuple[int, ...]:
        """Return the shape of a tensor."""
        if not isinstance(tensor, torch.Tensor):
            return super().shape(tensor)
        with _translated_errors():
            return tuple(_shaped(_local(tensor)).shape)

    def nbytes(self, tensor: Any) -> int:
        """Return the size in bytes of the elements on the host."""
        if not isinstance(tensor, torch.Tensor):
            return super().nbytes(tensor)
        with _translated_errors():
            tensor = _local(tensor)
            return int(tensor.numel()) * int(_WIDER.get(tensor.dtype, tensor.dtype).itemsize)

    def copy(self, tensor: Any) -> Array:
        """Return a copy of the elements in host memory."""
        if not isinstance(tensor, torch.Tensor):
            return super().copy(tensor)
        with _translated_errors():
            own = _local(tensor)
            host = _plain(own).cpu()
            array: Array = (host.clone() if host is own else host).numpy()
        return array

    def reduce(
        self, tensor: Any, keys: Sequence[ReductionKey]
    ) -> Iterable[tuple[ReductionKey, Any]]:
        """Return the reductions, computed on the tensor's device."""
        if not isinstance(tensor, torch.Tensor):
            return super().reduce(tensor, keys)
        if _is_ordinary(tensor):
            return reduced_on_host(tensor.detach(), keys)
        with _translated_errors():
            plain = _plain(_local(tensor))
            if plain.is_complex():
                # Complex numbers have no order, only their magnitudes do.
                keys = [key for key in keys if key[1]]
                plain = plain.abs()
            if not plain.numel():
                keys = [key for key in keys if key[0] not in NEED_ELEMENTS]
            return list(_reduced(plain, keys))

    def collect(self, scalars: Sequence[Any]) -> Sequence[Array]:
        """Return scalars as zero-dimensional arrays, with one transfer per device and type."""
        arrays: list[Any] = [None] * len(scalars)
        groups: dict[tuple[Any, Any], list[int]] = {}
        for index, scalar in enumerate(scalars):
            if isinstance(scalar, torch.Tensor):
                groups.setdefault((scalar.device, scalar.dtype), []).append(index)
            else:
                arrays[index] = scalar if type(scalar) is np.ndarray else np.asarray(scalar)
        for indexes in groups.values():
            stacked = torch.stack([scalars[index] for index in indexes]).cpu().numpy()
            for index, value in zip(indexes, stacked, strict=True):
                arrays[index] = np.asarray(value)
        return arrays


@contextmanager
def _translated_errors() -> Iterator[None]:
    """Convert errors of PyTorch to `SMDebugTypeError`, so that only the tensor is skipped."""
    try:
        yield
    except SMDebugTypeError:
        raise
    except (RuntimeError, TypeError, ValueError) as err:
        reason = (str(err) or type(err).__name__).splitlines()[0]
        raise SMDebugTypeError(reason.rstrip(".") + ".") from err


def _is_ordinary(tensor: Any) -> bool:
    """Return whether a tensor is a plain, dense tensor of floats on the host, as most are."""
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
    """Return the tensor if it has a shape and values."""
    if is_transformed(tensor):
        raise SMDebugTypeError(
            "Inside torch.func it represents values that are not computed one by one."
        )
    if tensor.is_nested:
        raise SMDebugTypeError("Nested tensors have no shape that the trial format supports.")
    return tensor


def _plain(tensor: Any) -> Any:
    """Return a dense tensor with the same values and a type known to numpy."""
    tensor = _shaped(tensor)
    if tensor.device.type == "meta":
        raise SMDebugTypeError("It is on device 'meta', where tensors have no elements.")
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if tensor.layout is not torch.strided:
        if tensor.numel() * tensor.dtype.itemsize > MOST_DENSE:
            raise SMDebugTypeError(
                f"As a dense tensor, the sparse tensor would take more than {MOST_DENSE} bytes."
            )
        tensor = tensor.to_dense()
    wider = _WIDER.get(tensor.dtype)
    return (tensor if wider is None else tensor.to(wider)).resolve_conj().resolve_neg()


def _reduced(plain: Any, keys: Sequence[ReductionKey]) -> Iterator[tuple[ReductionKey, Any]]:
    """Yield reductions; sums of half precision in single precision, of integers in double."""
    floating = plain.is_floating_point()
    plain = plain.to(_COMPUTED_AS.get(plain.dtype, plain.dtype))
    if plain.device.type == "cpu" and plain.dtype in ON_HOST and plain.numel():
        yield from reduced_on_host(plain, keys)
        return
    numbers = plain if floating else plain.to(torch.float64)
    extremes: dict[str, Any] = {}
    for operation, absolute in keys:
        if operation in {"min", "max"} and not absolute:
            if not extremes:
                low, high = torch.aminmax(plain)
                extremes = {"min": low, "max": high}
            value = extremes[operation]
        elif operation in _OF_MAGNITUDES and (absolute or operation in {"l1", "l2"}):
            value = _OF_MAGNITUDES[operation](numbers)
        else:
            elements = numbers if floating or operation not in {"sum", "prod"} else plain
            value = _OF_VALUES[operation](elements.abs() if absolute else elements)
        yield (operation, absolute), value


def _median(numbers: Any) -> Any:
    """Return the median as numpy does: the mean of the middle two, NaN if any value is NaN."""
    ascending, half = numbers.flatten().sort().values, numbers.numel() // 2
    middle = (ascending[half] + ascending[half - 1 + numbers.numel() % 2]) / 2
    return torch.where(ascending[-1].isnan(), ascending[-1], middle)


_norm = torch.linalg.vector_norm
# Computed in one pass, without a copy of the magnitudes.
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
    "median": _median,
    "sum": torch.sum,
    "prod": torch.prod,
    "std": lambda numbers: torch.var(numbers, correction=0).sqrt(),
    "variance": lambda numbers: torch.var(numbers, correction=0),
}
