"""CheckInputImages and NLPSequenceRatio against second, slow versions, over random trials."""

import itertools
import math
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from judging import judge, save
from numpy.typing import NDArray

from builtin_rules import CheckInputImages, NLPSequenceRatio
from smdebug.rules.extensions import Finding, Severity

WORKERS = ("worker_0", "worker_1")
By_worker = dict[str, dict[int, NDArray[Any]]]  # worker -> step -> value


@st.composite
def trials(draw: st.DrawFn, shapes: list[tuple[int, ...]], values: list[float]) -> By_worker:
    """Return one tensor of one or two workers, of few shapes, missing at some steps."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    some = st.sampled_from(draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=2)))
    level = draw(st.lists(st.sampled_from(values), min_size=1, max_size=4))
    return {
        worker: {
            step: np.array(rng.choice(level, draw(some)), np.float64)
            for step in draw(st.lists(st.integers(0, 5), min_size=1, unique=True))
        }
        for worker in WORKERS[: draw(st.integers(1, 2))]
    }


def found_by(rule: Any, name: str, saved: By_worker, **params: Any) -> list[Finding]:
    """Return the findings of the real rule."""
    with tempfile.TemporaryDirectory() as folder:
        for worker, steps in saved.items():
            tensors = {step: {name: value} for step, value in steps.items()}
            save(Path(folder), tensors, worker=worker, num_workers=len(saved))
        findings: list[Finding] = judge(rule, Path(folder), **params).findings
    return findings


# -- CheckInputImages ----------------------------------------------------------------------------

IMAGES = [
    (3, 3, 2, 2),
    (3, 2, 2, 3),
    (2, 4, 4, 1),
    (5, 1, 3, 3),
    (4, 5, 2, 2),
    (3, 2, 2),
    (4, 3),
    (3,),
]


def slow_axis(
    name: str, shape: tuple[int, ...], channel: int | None, *, literal: bool
) -> int | None:
    if channel is not None:
        return channel
    if literal:
        return 1
    if len(shape) < 4:
        return None
    candidates = [one for one in (1, len(shape) - 1) if shape[one] in (1, 3, 4)]
    if not candidates:
        return 1
    return candidates[-1] if name == "inputs" else candidates[0]


def slow_worst(channels: list[list[float]], *, exact: bool) -> tuple[int, Severity] | None:
    """Return the channel whose mean is furthest too far out, and how serious that is.

    A note comes last; with `exact`, neither deviations nor scales matter.
    """
    every = [pixel for pixels in channels for pixel in pixels]
    scaled = bool(every) and min(every) in {-1, 0} and 0 < max(every) <= 1
    off = []
    for number, pixels in enumerate(channels):
        if not pixels:
            continue
        mean = math.fsum(pixels) / len(pixels)
        deviation = math.sqrt(math.fsum((one - mean) ** 2 for one in pixels) / len(pixels))
        dark = abs(mean) < deviation and math.fsum(one**2 for one in pixels) <= len(pixels)
        limit = 0.2 if exact else max(0.2, 0.4 * deviation)
        if abs(mean) > limit:
            off.append((exact or not (scaled or dark), abs(mean) - limit, -number))
    if not off:
        return None
    serious, _, number = max(off)
    return -number, Severity.WARNING if serious else Severity.NOTE


def slow_images(
    name: str, saved: By_worker, channel: int | None, *, default: bool, literal: bool, exact: bool
) -> list[tuple[int, str, Severity]]:
    """Return where the mean of some channel is too far out, from single pixels."""
    found = []
    channels: list[list[float]] = []
    images = 0
    for step in range(6):
        here = [steps[step] for _, steps in sorted(saved.items()) if step in steps]
        some = False
        for value in here:
            shape = value.shape
            axis = slow_axis(name, shape, channel, literal=literal)
            looks = len(shape) == 4 and {shape[1], shape[3]} & {1, 3, 4}
            looks = looks or (len(shape) == 3 and shape[1] == shape[2])
            if (default and not looks) or len(shape) < 2 or (axis or 0) >= len(shape):
                continue
            number = 1 if axis is None else shape[axis]
            if len(channels) != number:
                channels, images = [[] for _ in range(number)], 0
            for place in itertools.product(*map(range, shape)):
                if math.isfinite(value[place]):
                    channels[0 if axis is None else place[axis]].append(float(value[place]))
            images += shape[0]
            some = True
        worst = slow_worst(channels, exact=exact or literal)
        if some and images >= 6 and worst is not None:
            number, severity = worst
            mean = math.fsum(channels[number]) / len(channels[number])
            note = f"Channel {number} of {len(channels)} has mean {mean:.4g}; images: {images}."
            found.append((step, note, severity))
    return found


@given(
    trials(IMAGES, [0.0, 0.0, 0.25, -0.25, 1.0, -1.0, 40.0, math.nan, math.inf, -math.inf]),
    st.sampled_from(["inputs", "Net_input_0"]),
    st.sampled_from([None, None, 1, 2, 3]),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_check_input_images(
    saved: By_worker, name: str, channel: int | None, default: bool, literal: bool, exact: bool
) -> None:
    params: dict[str, Any] = {"literal": literal, "threshold_samples": 6}
    if channel is not None:
        params["channel"] = channel
    if not default:
        params["regex"] = "."
    if exact:
        params["threshold_mean"] = 0.2
    expected = slow_images(name, saved, channel, default=default, literal=literal, exact=exact)
    found = found_by(CheckInputImages, name, saved, **params)
    assert [(one.step, one.note, one.severity) for one in found] == expected


# -- NLPSequenceRatio ----------------------------------------------------------------------------


def slow_tokens(
    saved: By_worker, limits: list[tuple[float, float]], *, default: bool
) -> list[tuple[int, str]]:
    """Return where a token has more than its share, token by token."""
    found = []
    for step in range(6):
        here = [[float(x) for x in one[step].ravel()] for one in saved.values() if step in one]
        if default:
            here = [one for one in here if all(x.is_integer() for x in one)]
        every = [x for one in here for x in one]
        for token, limit in limits if every else []:
            number = every.count(token)
            if 100 * number > limit * len(every):
                found.append((step, f"Token {token:g}: {number} of {len(every)}."))
    return found


@given(
    trials([(2, 3), (4,), (2, 2, 2), ()], [0.0, 0.0, 1.0, 3.0, 0.5, math.nan]),
    st.lists(st.sampled_from([(0.0, 50.0), (0.0, 25.0), (1.0, 0.0), (3.0, 99.0)]), min_size=1),
    st.booleans(),
)
def test_nlp_sequence_ratio(
    saved: By_worker, limits: list[tuple[float, float]], default: bool
) -> None:
    params: dict[str, Any] = {
        "token_values": ",".join(str(token) for token, _ in limits),
        "token_thresholds_percent": [limit for _, limit in limits],
    }
    if not default:
        params["tensor_regex"] = "embedding"
    expected = slow_tokens(saved, limits, default=default)
    found = found_by(NLPSequenceRatio, "embedding0_input_0", saved, **params)
    assert [(one.step, one.note) for one in found] == expected
