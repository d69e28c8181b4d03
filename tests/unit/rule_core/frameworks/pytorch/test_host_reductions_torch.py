import numpy as np
import pytest

from rule_core.model.reductions import OPERATIONS, compute_all

torch = pytest.importorskip("torch", reason="torch is not installed.")
from rule_core.frameworks.pytorch.host_reductions import PART, reduced_on_host

WANTED = [
    (operation, absolute)
    for operation in OPERATIONS
    if operation not in {"median", "prod"}
    for absolute in (False, True)
]
SIZES = [1, 2, 4096, 4097, PART, PART + 1, 3 * PART + 17]


def compared(tensor: "torch.Tensor", rtol: float = 1e-5, atol: float = 1e-7) -> None:
    """See that reductions are those of the slower way, in double precision."""
    array = tensor.numpy()
    found = dict(reduced_on_host(tensor, WANTED))
    assert list(found) == [one for one in WANTED if one in found]
    assert {(one.shape, one.dtype) for one in found.values()} == {((), array.dtype)}
    expected = compute_all(array.astype(np.float64), WANTED)
    scale = float(np.abs(array).max()) if np.isfinite(array).all() else 1.0
    for one in WANTED:
        with np.errstate(over="ignore"):
            wanted = expected[one].astype(array.dtype)
        np.testing.assert_allclose(
            found[one], wanted, rtol=rtol, atol=atol * scale * array.size, err_msg=str(one)
        )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_reductions_of_every_size(size: int, dtype: "torch.dtype") -> None:
    generator = torch.Generator().manual_seed(size)
    compared(torch.randn(size, generator=generator, dtype=dtype) + 0.25)


def test_strides_do_not_matter() -> None:
    images = torch.arange(2 * 3 * 5 * 7.0).reshape(2, 3, 5, 7)
    matrix = torch.arange(-20.0, 22).reshape(6, 7)
    for tensor in (
        images.contiguous(memory_format=torch.channels_last),
        images.permute(3, 1, 0, 2),
        images[:, ::2, 1:, ::3],
        matrix.t(),
        matrix[::2, ::3],
        torch.tensor(-3.5),
        torch.ones(4).expand(3, 4),
    ):
        compared(tensor)


@pytest.mark.parametrize("size", [5, PART + 5])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_seen_in_every_part(size: int, special: float) -> None:
    for at in (0, size - 1):
        tensor = torch.linspace(-1, 1, size)
        tensor[at] = special
        found = {
            one: float(value)
            for one, value in reduced_on_host(tensor, WANTED)
            if one[0] in {"min", "max", "sum", "mean", "l1", "l2"}
        }
        expected = compute_all(tensor.numpy(), list(found))
        for one, value in found.items():
            np.testing.assert_array_equal(
                np.isfinite(value), np.isfinite(expected[one]), err_msg=f"{one} at {at}"
            )
            if not np.isfinite(value):
                np.testing.assert_equal(value, float(expected[one]), err_msg=f"{one} at {at}")


@pytest.mark.parametrize("size", [4, PART + 4])
def test_sums_that_overflow_single_precision_still_have_a_mean(size: int) -> None:
    tensor = torch.full((size,), 3e38)
    found = dict(reduced_on_host(tensor, [("mean", False), ("mean", True), ("l2", False)]))
    assert float(found["mean", False]) == pytest.approx(3e38)
    assert float(found["mean", True]) == pytest.approx(3e38)
    assert float(found["l2", False]) == np.inf  # no float32 holds it


def test_what_is_asked_alone_needs_nothing_else() -> None:
    tensor = torch.tensor([3.0, -4.0])
    asked = {one: float(reduced_on_host(tensor, [one])[0][1]) for one in WANTED}
    assert asked["max", True] == 4.0
    assert asked["min", True] == 3.0
    assert asked["l2", False] == asked["l2", True] == 5.0
    assert asked["std", False] == 3.5
    assert asked["sum", False] == -1.0
