"""Reductions that were saved and computed are scalars of one kind."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

from rule_core.model.reductions import reduced_value

TYPES = [*"bBhHiIlLefdFD"]


@pytest.mark.parametrize("code", TYPES)
@pytest.mark.parametrize("shape", [(1,), (), None])
def test_a_reduction_is_indexed_compared_and_converted(
    code: str, shape: tuple[int, ...] | None
) -> None:
    dtype = np.dtype(code)
    value = dtype.type(3) if shape is None else np.full(shape, 3, dtype)
    scalar = reduced_value(value)
    assert isinstance(scalar, dtype.type)
    assert (scalar.dtype, scalar.tobytes()) == (dtype, dtype.type(3).tobytes())
    assert (scalar[0], scalar[0][0], [*scalar], scalar[()].shape) == (3, 3, [3], (1,))
    assert (complex(scalar), hash(scalar), str(scalar)) == (3, hash(3), str(dtype.type(3)))
    with pytest.raises(IndexError):
        scalar[1]
    several = np.array([scalar, scalar])
    assert (several.shape, several.dtype) == ((2,), dtype)
    assert type(pickle.loads(pickle.dumps(scalar))) is dtype.type
    assert copy.deepcopy(scalar) == 3


def test_what_scripts_do_with_a_reduction() -> None:
    scalar = reduced_value(np.array([2.5], np.float32))
    assert (float(scalar), f"{scalar:.2f}", round(scalar, 0), scalar < 3) == (2.5, "2.50", 2, True)
    assert math.isnan(reduced_value(np.float64("nan")))
    assert (np.ones(2) * scalar).tolist() == [2.5, 2.5]
    assert {scalar: 1}[np.float32(2.5)] == 1


@pytest.mark.parametrize("value", [np.True_, np.longdouble(1)])
def test_other_types_are_plain_scalars(value: Any) -> None:
    assert type(reduced_value(np.array([value]))) is type(value)
