"""Shapes, copies and reductions of PyTorch's tensors of every kind, beside numpy's."""

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from torch_models import array, assert_same, rows

from rule_core.exceptions import SMDebugTypeError
from rule_core.frameworks.pytorch.torch_access import TorchAccess

torch = pytest.importorskip("torch", reason="torch is not installed.")
ACCESS = TorchAccess()
REDUCTIONS = ("min", "max", "mean", "std", "variance", "sum", "prod", "median", "l1", "l2")
WANTED = tuple((name, absolute) for absolute in (False, True) for name in REDUCTIONS)
NEED_ELEMENTS = {"min", "max", "mean", "std", "variance", "median"}
BY_NUMPY = {
    "variance": np.var,
    "l1": lambda values: np.abs(values).sum(),
    "l2": lambda values: np.sqrt((np.abs(values) ** 2).sum()),
}
INF, NAN = float("inf"), float("nan")
SEEDED = np.random.default_rng(3).normal(0, 2, (5, 7, 3))
VALUES = {
    "usual": SEEDED,
    "one": np.array([-2.5]),
    "no dimension": np.array(-2.5),
    "NaN": np.array([1, NAN, -3]),
    "infinities": np.array([INF, -INF, 2]),
    "infinity": np.array([1, INF, 2]),
    "negative zero": np.array([-0.0, 0.0]),
    "many": np.random.default_rng(4).normal(1e-3, 1, 70_000),
}


def reduced(tensor: Any, wanted: Any = WANTED) -> dict[tuple[str, bool], Any]:
    """Return what the hook would save."""
    pairs = list(ACCESS.reduce(tensor, wanted))
    return dict(zip([key for key, _ in pairs], ACCESS.collect([v for _, v in pairs]), strict=True))


def by_numpy(values: "np.ndarray[Any, Any]", name: str, absolute: bool) -> Any:
    """Return a reduction in double precision."""
    values = values.astype(np.complex128 if values.dtype.kind == "c" else np.float64)
    values = np.abs(values) if absolute else values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of infinities
        return BY_NUMPY.get(name, getattr(np, name, None))(values)


def check(tensor: Any, values: "np.ndarray[Any, Any]", tolerance: float) -> None:
    found = reduced(tensor)
    assert set(found) == set(WANTED)
    for (name, absolute), value in found.items():
        expected = by_numpy(values, name, absolute)
        np.testing.assert_allclose(
            value.astype(float),
            expected,
            rtol=tolerance,
            atol=tolerance,
            err_msg=f"{name} {absolute}",
        )


@pytest.mark.parametrize("which", VALUES)
@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float64, 1e-12), (torch.float32, 1e-4), (torch.float16, 1e-2), (torch.bfloat16, 5e-2)],
    ids=str,
)
def test_reductions_of_floats(which: str, dtype: Any, tolerance: float) -> None:
    tensor = torch.tensor(VALUES[which]).to(dtype)
    values = tensor.double().numpy()
    if which == "many":  # a product of them is nothing
        tensor, values = tensor[: 1 << 15], values[: 1 << 15]
    check(tensor, values, tolerance)


@pytest.mark.parametrize(
    "dtype",
    [
        *(torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64),
        *(torch.uint16, torch.uint32, torch.uint64, torch.bool),
    ],
    ids=str,
)
def test_reductions_of_integers(dtype: Any) -> None:
    signed = dtype in {torch.int8, torch.int16, torch.int32, torch.int64}
    tensor = torch.tensor([[-3 if signed else 3, 2], [0, 5]]).to(dtype)
    check(tensor, tensor.to(torch.int64).numpy(), 1e-12)


def test_a_sum_of_many_small_integers_does_not_overflow() -> None:
    found = reduced(torch.full((1000,), 255, dtype=torch.uint8), [("sum", False), ("mean", False)])
    assert {key[0]: int(value) for key, value in found.items()} == {"sum": 255_000, "mean": 255}


def test_a_norm_of_half_precision_does_not_overflow() -> None:
    found = reduced(torch.full((4,), 60_000, dtype=torch.float16), [("sum", False), ("l2", False)])
    assert {key[0]: float(value) for key, value in found.items()} == {"sum": 240_000, "l2": 120_000}


@pytest.mark.parametrize("dtype", [torch.complex64, torch.complex128, torch.complex32], ids=str)
@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
def test_complex_numbers_have_reductions_of_their_magnitudes(dtype: Any) -> None:
    tensor = torch.tensor([3 + 4j, -1j, 0]).to(dtype)
    found = reduced(tensor)
    assert sorted(found) == sorted(one for one in WANTED if one[1])
    for (name, absolute), value in found.items():
        np.testing.assert_allclose(
            value, by_numpy(tensor.to(torch.complex128).numpy(), name, absolute), rtol=1e-3
        )
    wider = torch.complex64 if dtype is torch.complex32 else dtype
    assert_same({"": tensor.to(wider).numpy()}, {"": ACCESS.copy(tensor)})


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.int64, torch.bool, torch.complex64], ids=str
)
def test_nothing_has_only_the_reductions_that_need_no_element(dtype: Any) -> None:
    tensor = torch.empty((0, 3), dtype=dtype)
    wanted = [
        one for one in WANTED if one[0] not in NEED_ELEMENTS and (one[1] or not dtype.is_complex)
    ]
    found = reduced(tensor)
    assert {key: float(value) for key, value in found.items()} == {
        one: 1.0 if one[0] == "prod" else 0.0 for one in wanted
    }
    assert ACCESS.shape(tensor) == (0, 3)
    assert ACCESS.nbytes(tensor) == 0


FLOAT8 = [
    getattr(torch, name)
    for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
    if hasattr(torch, name)
]


@pytest.mark.parametrize("dtype", [torch.bfloat16, *FLOAT8], ids=str)
def test_types_that_numpy_has_not_are_saved_as_float32(dtype: Any) -> None:
    tensor = torch.tensor([1.5, -0.25, 2.0]).to(dtype)
    name = str(dtype).removeprefix("torch.")
    expected = np.array([1.5, -0.25, 2.0]).astype(getattr(ml_dtypes, name)).astype(np.float32)
    assert_same({"": expected}, {"": ACCESS.copy(tensor)})
    assert ACCESS.nbytes(tensor) == 12
    check(tensor, expected, 1e-2)


LAYOUTS = {
    "transposed": torch.arange(6.0).reshape(2, 3).T,
    "expanded": torch.tensor([1.0]).expand(3, 2),
    "every second": torch.arange(6.0)[::2],
    "channels last": torch.arange(24.0).reshape(1, 2, 3, 4).to(memory_format=torch.channels_last),
    "of a graph": torch.ones(2, requires_grad=True) * 3,
    "conjugated": torch.tensor([1 + 2j]).conj(),
    "negated": torch.tensor([1 + 2j]).conj().imag,
    "bool": torch.tensor([True, False]),
    "no dimension": torch.tensor(2.0),
}


@pytest.mark.parametrize("which", LAYOUTS)
def test_a_copy_holds_the_elements_and_shares_no_memory(which: str) -> None:
    tensor = LAYOUTS[which]
    expected = np.array(
        tensor.detach().resolve_conj().resolve_neg().tolist(), dtype=array_type(tensor)
    )
    found = ACCESS.copy(tensor)
    assert_same({"": expected}, {"": found})
    kept = tensor.detach().clone()
    found[...] = 0
    assert torch.equal(tensor.detach(), kept)
    assert ACCESS.shape(tensor) == tuple(tensor.shape)
    assert ACCESS.nbytes(tensor) == expected.nbytes


def array_type(tensor: Any) -> Any:
    return torch.empty(0, dtype=tensor.dtype).numpy().dtype


def sparse(layout: str) -> Any:
    dense = torch.tensor([[0.0, 2.0], [-3.0, 0.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # sparse compressed tensors are in beta
        return getattr(dense, f"to_{layout}")()


@pytest.mark.parametrize("layout", ["sparse_coo", "sparse_csr", "sparse_csc"])
def test_sparse_tensors_are_written_out(layout: str) -> None:
    tensor = sparse(layout)
    expected = np.array([[0, 2], [-3, 0]], np.float32)
    assert_same({"": expected}, {"": ACCESS.copy(tensor)})
    assert (ACCESS.shape(tensor), ACCESS.nbytes(tensor)) == ((2, 2), 16)
    check(tensor, expected, 1e-6)


def test_a_sparse_tensor_that_repeats_an_index() -> None:
    tensor = torch.sparse_coo_tensor([[0, 0, 1]], [1.0, 2.0, 4.0], (3,), check_invariants=True)
    assert_same({"": np.array([3, 4, 0], np.float32)}, {"": ACCESS.copy(tensor)})


@pytest.mark.filterwarnings("ignore:.*quantize")
def test_quantized_tensors_are_written_out() -> None:
    tensor = torch.quantize_per_tensor(torch.tensor([0.5, -0.2]), 0.1, 0, torch.qint8)
    assert_same({"": array(tensor.dequantize())}, {"": ACCESS.copy(tensor)})
    check(tensor, array(tensor.dequantize()), 1e-6)


class Marked(torch.Tensor):
    """A subclass that changes nothing."""


def test_a_subclass_is_read_as_what_it_is() -> None:
    tensor = torch.tensor([1.0, -2.0]).as_subclass(Marked)
    assert_same({"": np.array([1, -2], np.float32)}, {"": ACCESS.copy(tensor)})
    check(tensor, np.array([1.0, -2.0]), 1e-6)


@pytest.mark.filterwarnings("ignore:.*nested tensors:UserWarning")
@pytest.mark.parametrize(
    ("make", "text"),
    [
        pytest.param(
            lambda: torch.empty(3, device="meta"),
            r"It is on device 'meta', where tensors have no elements\.",
            id="a device without elements",
        ),
        pytest.param(
            lambda: torch.nested.nested_tensor([rows(0), rows(0)[:2]]),
            r"Nested tensors have no shape that the trial format supports\.",
            id="nested",
        ),
        pytest.param(
            lambda: torch.nested.nested_tensor([rows(0), rows(0)[:2]], layout=torch.jagged),
            r"Nested tensors have no shape that the trial format supports\.",
            id="jagged",
        ),
        pytest.param(
            lambda: torch.sparse_coo_tensor([[0]], [1.0], (1 << 40,), check_invariants=True),
            r"As a dense tensor, the sparse tensor would take more than 268435456 bytes\.",
            id="sparse and large",
        ),
    ],
)
def test_what_cannot_be_read(make: Any, text: str) -> None:
    tensor = make()
    with pytest.raises(SMDebugTypeError, match=text):
        ACCESS.copy(tensor)
    with pytest.raises(SMDebugTypeError, match=text):
        reduced(tensor)


def test_numpy_and_plain_numbers_are_left_to_numpy() -> None:
    assert_same({"": np.array([2.5])}, {"": ACCESS.copy(2.5)})
    assert ACCESS.shape(np.zeros((2, 3))) == (2, 3)
    assert ACCESS.nbytes(np.zeros(2)) == 16
    assert reduced([1.0, 3.0], [("mean", False)])["mean", False] == 2.0
