"""What a hook asks of numpy's arrays, and of what numpy makes arrays of."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from rule_core.exceptions import SMDebugTypeError
from rule_core.saving.tensor_adapter import NumpyAccess, check_names

ACCESS = NumpyAccess()


@pytest.mark.parametrize(
    ("value", "shape", "nbytes"),
    [
        (np.zeros((2, 3), np.float16), (2, 3), 12),
        (np.array(5, np.int8), (), 1),
        (2.5, (1,), 8),
        (True, (1,), 1),
        ([[1.0], [2.0]], (2, 1), 16),
        ("ab", (1,), 8),
        (np.zeros((0, 4)), (0, 4), 0),
        (np.zeros(3, ml_dtypes.bfloat16), (3,), 6),
    ],
    ids=repr,
)
def test_shape_and_size(value: Any, shape: tuple[int, ...], nbytes: int) -> None:
    assert (ACCESS.shape(value), ACCESS.nbytes(value)) == (shape, nbytes)
    copied = ACCESS.copy(value)
    assert (copied.shape, copied.tolist()) == (shape, np.asarray(value).reshape(shape).tolist())


def test_a_copy_is_its_own() -> None:
    array = np.arange(6).reshape(2, 3)
    for one in (array, array.T, array[:, 1], array.view(np.matrix)):
        copied = ACCESS.copy(one)
        assert not np.shares_memory(copied, array)
        assert copied.tolist() == one.tolist()


def test_reductions_are_collected_as_arrays_of_one() -> None:
    wanted = [("min", False), ("l2", True), ("prod", False)]
    found = list(ACCESS.reduce(np.array([3, -4], np.int16), wanted))
    assert [one for one, _ in found] == wanted
    scalars = ACCESS.collect([scalar for _, scalar in found])
    assert [(one.shape, one.dtype.name, one.tolist()) for one in scalars] == [
        ((1,), "int16", [-4]),
        ((1,), "float64", [5.0]),
        ((1,), "int64", [-12]),
    ]


def test_what_has_no_elements_has_some_reductions() -> None:
    wanted = [("min", False), ("sum", False), ("mean", True), ("l1", True)]
    found = dict(ACCESS.reduce(np.zeros((0, 2)), wanted))
    assert {one: float(value) for one, value in found.items()} == {
        ("sum", False): 0.0,
        ("l1", True): 0.0,
    }


def test_texts_have_no_reductions() -> None:
    assert list(ACCESS.reduce(["a", "b"], [("min", False)])) == []


BAD: dict[str, Any] = {
    "objects": np.array([object()]),
    "0-D text": np.array("text"),
    "half a text": ["a\ud800"],
    "bytes that are no text": [b"\xff"],
    "dates": np.zeros(1, "M8[s]"),
    "ragged": [[1], [1, 2]],
}


@pytest.mark.parametrize("name", BAD)
def test_what_the_format_cannot_hold(name: str) -> None:
    message = (
        "^The trial format cannot hold|^A value of type list cannot be converted to an array: "
    )
    with pytest.raises(SMDebugTypeError, match=message):
        ACCESS.copy(BAD[name])
    with pytest.raises(SMDebugTypeError, match=message):
        list(ACCESS.reduce(BAD[name], [("min", False)]))


def test_names() -> None:
    check_names("", "a/b", "größe ✓ 🙂", "\0")
    for bad in ("\udfff", 5, None, b"x"):
        with pytest.raises(
            SMDebugTypeError, match=r"^Names must be text that UTF-8 can encode, got"
        ):
            check_names("fine", bad)
