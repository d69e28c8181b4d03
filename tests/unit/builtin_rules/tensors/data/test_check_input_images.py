"""CheckInputImages: which images meet the condition, from which step on, and what a channel is."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, save
from members import save_members
from numpy.typing import NDArray

from builtin_rules import CheckInputImages
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

NAME = "Net_input_0"
NOT_IMAGES = "no values that are images at this step"
NO_IMAGES = "no images at this step"
Array = NDArray[Any]


def images(*means: float, number: int = 500, side: int = 4, dtype: Any = np.float32) -> Array:
    """Return images whose channels have these values throughout."""
    channels = np.array(means, np.float64).astype(dtype).reshape(1, -1, 1, 1)
    return np.tile(channels, (number, 1, side, side))


def judged(root: Path, values: list[Any], name: str = NAME, **params: Any) -> Judged:
    """Judge one tensor, saved at steps 0, 1, 2...; None leaves a step without it."""
    steps = {
        at: {"fc.weight": np.ones(2)} if value is None else {name: value}
        for at, value in enumerate(values)
    }
    return judge(CheckInputImages, save(root, steps), **params)


@pytest.mark.parametrize(
    ("values", "met"),
    [
        pytest.param([images(0, 0, 0)], [], id="normalised"),
        pytest.param([images(0, 0, 2)], [0], id="one-channel"),
        pytest.param([images(0, -0.3, 0)], [0], id="below-zero"),
        pytest.param([images(0.25)], [0], id="one-grey-channel"),
        pytest.param([images(0.25, -0.25, 0.0)], [0], id="channels-do-not-cancel"),
        pytest.param([images(0.125), images(0.5)], [1], id="all-images-so-far"),
        pytest.param([images(0.5), images(-0.5), images(-0.5)], [0], id="recovers"),
        pytest.param([images(1, number=499), images(1, number=1)], [1], id="enough-images"),
        pytest.param([images(1), None, images(1)], [0, 2], id="missing-at-a-step"),
        pytest.param([images(255, dtype=np.uint8)], [0], id="raw"),
        pytest.param([images(np.nan, 2, 0)], [0], id="nan-in-another-channel"),
    ],
)
@pytest.mark.parametrize("literal", [False, True])
def test_it_is_met_where_the_mean_of_a_channel_is_far_out(
    values: list[Array | None], met: list[int], literal: bool, tmp_path: Path
) -> None:
    assert judged(tmp_path, values, literal=literal).met == met


def test_equal_is_not_further(tmp_path: Path) -> None:
    values = [images(0.25)]
    assert judged(tmp_path / "equal", values, threshold_mean=0.25).met == []
    assert judged(tmp_path / "less", values, threshold_mean=np.nextafter(0.25, 0)).met == [0]


def test_evidence_names_tensor_mean_limit_and_images(tmp_path: Path) -> None:
    found = judged(tmp_path, [images(0, -0.5, 0.25)])
    note = "Channel 1 of 3 has mean -0.5; images: 500."
    assert found.findings == [Finding(0, NAME, None, 0.5, 0.2, note, Severity.WARNING)]


def test_steps_before_there_are_enough_images_are_skipped(tmp_path: Path) -> None:
    found = judged(tmp_path, [images(1, number=200)] * 4)
    reason = "fewer than 500 images so far"
    assert (found.met, found.skipped) == ([2, 3], {0: reason, 1: reason})


def test_workers_and_modes_are_added_up(tmp_path: Path) -> None:
    modes = {0: ModeKeys.TRAIN, 1: ModeKeys.EVAL}
    for worker, mean in (("worker_0", 0.0), ("worker_1", 1.0)):
        steps = {at: {NAME: images(mean, number=125)} for at in modes}
        save(tmp_path, steps, modes=modes, worker=worker, num_workers=2)
    (finding,) = judge(CheckInputImages, tmp_path).findings
    assert (finding.step, finding.measured, finding.worker) == (1, 0.5, None)


def test_tensors_are_judged_apart(tmp_path: Path) -> None:
    tensors = {"A_input_0": images(1), "B_input_0": images(-1), "C_input_0": images(0)}
    found = judge(CheckInputImages, save(tmp_path, {0: tensors}))
    assert [one.tensor for one in found.findings] == ["A_input_0", "B_input_0"]


def test_another_number_of_channels_restarts(tmp_path: Path) -> None:
    values = [images(1, number=400), images(1, 1, 1, number=400), images(1, 1, 1, number=100)]
    assert judged(tmp_path, values).met == [2]


def test_images_of_other_sizes_are_added(tmp_path: Path) -> None:
    values = [images(1, number=250, side=2), images(0, number=250, side=4)]
    (finding,) = judged(tmp_path, values, threshold_mean=0.1).findings
    assert finding.measured == 0.2


@pytest.mark.parametrize(("deviation", "met"), [(0.5, [0]), (0.74, [0]), (0.76, []), (2.0, [])])
def test_a_mean_within_four_tenths_of_the_deviation_is_near_enough(
    deviation: float, met: list[int], tmp_path: Path
) -> None:
    pixels = np.full((500, 3, 4, 4), 0.3)
    pixels[:, :, ::2] += deviation
    pixels[:, :, 1::2] -= deviation
    found = judged(tmp_path, [pixels])
    assert [finding.step for finding in found.findings] == met
    assert judged(tmp_path / "letter", [pixels], literal=True).met == [0]


@pytest.mark.parametrize(
    ("mean", "deviation", "severity"),
    [
        pytest.param(0.5, 0.6, Severity.NOTE, id="usual"),
        pytest.param(0.5, 0.9, Severity.WARNING, id="varies-more"),
        pytest.param(0.6, 0.5, Severity.WARNING, id="mean-larger-than-deviation"),
    ],
)
def test_a_mean_below_the_deviation_on_a_usual_scale_is_a_note(
    mean: float, deviation: float, severity: Severity, tmp_path: Path
) -> None:
    pixels = np.full((500, 1, 4, 4), mean)
    pixels[:, :, ::2] += deviation
    pixels[:, :, 1::2] -= deviation
    assert [finding.severity for finding in judged(tmp_path, [pixels]).findings] == [severity]


@pytest.mark.parametrize(
    ("lowest", "highest", "severity"),
    [
        pytest.param(-1.0, 1.0, Severity.NOTE, id="scaled"),
        pytest.param(-1.0, 0.5, Severity.NOTE, id="scaled-dark"),
        pytest.param(-1.0, 1.1, Severity.WARNING, id="higher"),
        pytest.param(-1.1, 1.0, Severity.WARNING, id="lower"),
        pytest.param(-1.0, -0.5, Severity.WARNING, id="below-zero"),
        pytest.param(0.1, 0.9, Severity.WARNING, id="above-zero"),
        pytest.param(0.0, 1.0, Severity.NOTE, id="from-zero"),
    ],
)
def test_images_scaled_between_zero_or_minus_one_and_one_are_a_note(
    lowest: float, highest: float, severity: Severity, tmp_path: Path
) -> None:
    pixels = np.full((500, 1, 4, 4), highest if lowest >= 0 else lowest)
    pixels[:, :, 0, 0] = lowest if lowest >= 0 else highest
    result = judged(tmp_path, [pixels])
    assert [finding.severity for finding in result.findings] == [severity]
    assert result.met == ([] if severity is Severity.NOTE else [0])
    assert judged(tmp_path / "letter", [pixels], literal=True).met == [0]


@pytest.mark.parametrize("pixel", [np.nan, np.inf, -np.inf])
def test_scaled_images_may_have_pixels_without_a_number(pixel: float, tmp_path: Path) -> None:
    pixels = np.ones((500, 1, 4, 4))
    pixels[:, :, 0, :2] = 0.0, pixel
    (finding,) = judged(tmp_path, [pixels]).findings
    assert finding.severity == Severity.NOTE


@pytest.mark.parametrize(("literal", "met"), [(True, [7, 8, 9, 10, 12, 13, 14]), (False, [9])])
def test_no_later_step_is_read(literal: bool, met: list[int], tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = [rng.normal(shift, 1, (90, 1, 2, 2)) for shift in [0] * 7 + [2] * 3 + [-3] * 5]
    whole = judged(tmp_path / "whole", values, literal=literal)
    assert whole.met == met
    for end in range(1, len(values)):
        part = judged(tmp_path / str(end), values[:end], literal=literal)
        assert part.met == [step for step in whole.met if step < end]


@pytest.mark.parametrize("dtype", [np.float16, np.float64, ml_dtypes.bfloat16, np.int64, np.bool_])
def test_all_types_of_numbers_are_judged(dtype: Any, tmp_path: Path) -> None:
    values = [images(0, dtype=dtype), images(1, dtype=dtype)]
    assert [finding.step for finding in judged(tmp_path, values).findings] == [1]


def test_float16_is_summed_in_more(tmp_path: Path) -> None:
    (finding,) = judged(tmp_path, [images(255, number=600, side=8, dtype=np.float16)]).findings
    assert finding.measured == 255.0


# -- NaN and other input -------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
def test_what_is_not_finite_is_left_out(dtype: Any, tmp_path: Path) -> None:
    values = images(0.5, 0, 0, dtype=dtype)
    values[::2] = np.nan
    values[1, 0, 0] = np.inf
    values[3, 1, 0] = -np.inf
    (finding,) = judged(tmp_path, [values], regex="Net").findings
    assert finding.measured == 0.5


def test_nan_alone_is_not_judged(tmp_path: Path) -> None:
    assert judged(tmp_path, [images(np.nan)]).skipped == {0: "no finite pixel so far"}


def test_sums_beyond_all_numbers_are_far_out(tmp_path: Path) -> None:
    values = [images(1e308, dtype=np.float64)] * 2
    assert [one.measured for one in judged(tmp_path, values).findings] == [np.inf, np.inf]


@pytest.mark.parametrize(
    "value",
    [
        np.float32(3.0),
        np.ones(600),
        np.ones((0, 3, 4, 4)),
        np.array(["text"]),
        np.ones((600, 1, 2, 2), np.complex64),
    ],
    ids=["0-d", "1-d", "empty", "text", "complex"],
)
@pytest.mark.parametrize("regex", ["", "Net"])
@pytest.mark.parametrize("literal", [False, True])
def test_what_is_no_batch_of_images_is_not_judged(
    value: Any, regex: str, literal: bool, tmp_path: Path
) -> None:
    found = judged(tmp_path, [value], regex=regex, literal=literal)
    assert (found.met, found.skipped) == ([], {0: NOT_IMAGES})


def test_reductions_do_not_tell_channels_apart(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={4: {NAME: {("mean", False): 90.0}}})
    assert judge(CheckInputImages, tmp_path).skipped == {4: NOT_IMAGES}


def test_a_trial_without_images_is_not_judged(tmp_path: Path) -> None:
    assert judged(tmp_path, [None]).skipped == {0: NO_IMAGES}


# -- which axis holds the channels ---------------------------------------------------------------


def odd(shape: tuple[int, ...], axis: int) -> Array:
    """Return 0 but for one entry of an axis, which is 1."""
    values = np.zeros(shape, np.float32)
    np.moveaxis(values, axis, 0)[-1] = 1.0
    return values


@pytest.mark.parametrize(
    ("name", "shape", "axis", "params", "measured"),
    [
        pytest.param(NAME, (500, 3, 8, 8), 1, {}, 1.0, id="first"),
        pytest.param(NAME, (500, 8, 8, 3), 3, {}, 1.0, id="last"),
        pytest.param(NAME, (500, 5, 5, 3), 1, {}, 0.2, id="rows-are-no-channels"),
        pytest.param(NAME, (500, 4, 4, 3), 1, {}, 1.0, id="both-in-pytorch"),
        pytest.param("conv2d/inputs", (500, 4, 4, 3), 3, {}, 1.0, id="both-in-keras"),
        pytest.param("inputs", (500, 4, 4, 1), 1, {}, 0.25, id="both-in-a-keras-model"),
        pytest.param(NAME, (500, 9, 8, 8), 1, {"regex": "Net"}, 1.0, id="neither"),
        pytest.param(NAME, (500, 3, 2, 8, 8), 1, {"regex": "Net"}, 1.0, id="video"),
        pytest.param(NAME, (500, 2, 8, 8, 3), 4, {"regex": "Net"}, 1.0, id="video-last"),
        pytest.param(NAME, (500, 5, 5), 1, {}, 0.2, id="grey-is-one-channel"),
        pytest.param(NAME, (500, 4), 1, {"regex": "Net"}, 0.25, id="flat"),
        pytest.param(NAME, (500, 8, 8), 1, {"literal": True}, 1.0, id="letter-rows"),
        pytest.param(NAME, (500, 8, 8, 3), 3, {"literal": True}, 1 / 3, id="letter-last"),
        pytest.param(NAME, (500, 8, 8, 3), 2, {"channel": "2"}, 1.0, id="given"),
        pytest.param(NAME, (500, 3, 8, 8), 3, {"channel": 3}, 1.0, id="given-wins"),
        pytest.param(NAME, (500, 8, 8), 2, {"channel": 2}, 1.0, id="given-of-three"),
    ],
)
def test_the_channel_axis(
    name: str,
    shape: tuple[int, ...],
    axis: int,
    params: dict[str, Any],
    measured: float,
    tmp_path: Path,
) -> None:
    found = judged(tmp_path, [odd(shape, axis)], name, threshold_mean=0, **params)
    assert [one.measured for one in found.findings] == [measured]


def test_arrays_without_the_given_axis_are_not_judged(tmp_path: Path) -> None:
    assert judged(tmp_path, [np.ones((500, 8, 8))], channel=3).skipped == {0: NOT_IMAGES}


# -- names of frameworks -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *("hybridsequential0_input_0", "resnetv1_hybridsequential0_input_0"),
        *("Net_input_0", "ResNet_input_0", "Sequential_input_0", "ViT_input_pixel_values"),
        *("inputs", "input_1/outputs", "input_layer/inputs", "conv2d/inputs", "conv1/inputs"),
    ],
)
def test_images_are_found_in_every_framework(name: str, tmp_path: Path) -> None:
    assert judged(tmp_path, [images(1, 1, 1)], name).met == [0]


@pytest.mark.parametrize(
    "name",
    [
        *("Net_output_0", "conv1_input_0", "layer1.0.conv1_input_0", "Net_input_1", "labels"),
        *(
            "MSELoss_input_0",
            "L1Loss_input_0",
            "MyLoss_input_1",
            "ReLU_input_0",
            "BatchNorm2d_input_0",
        ),
        *("conv2d_1/inputs", "conv2d/outputs", "re_lu/inputs", "hybridsequential0_output_0"),
        *("gradient/Net_conv.weight", "Net_conv.weight", "predictions"),
    ],
)
def test_other_tensors_are_not_taken_for_images(name: str, tmp_path: Path) -> None:
    assert judged(tmp_path, [images(1, 1, 1)], name).skipped == {0: NO_IMAGES}


@pytest.mark.parametrize(
    "shape", [(500, 64), (500, 20, 64), (500, 64, 8, 8), (500, 3, 2, 8, 8)], ids=str
)
def test_the_default_judges_only_what_looks_like_images(
    shape: tuple[int, ...], tmp_path: Path
) -> None:
    values = [np.ones(shape, np.float32)]
    assert judged(tmp_path, values).skipped == {0: NOT_IMAGES}
    assert judged(tmp_path / "named", values, regex="Net").met == [0]


def test_the_collection_of_the_hooks_belongs_to_the_default(tmp_path: Path) -> None:
    steps = {0: {"encoder_0": images(1), "decoder_0": images(1)}}
    save_members(tmp_path, steps, {"encoder_0": "input_image"})
    assert [one.tensor for one in judge(CheckInputImages, tmp_path).findings] == ["encoder_0"]
    explicit = judge(CheckInputImages, tmp_path, regex="^de")
    assert [one.tensor for one in explicit.findings] == ["decoder_0"]


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "met"),
    [
        ({}, [1]),
        ({"threshold_mean": "1.5"}, []),
        ({"threshold_samples": "300"}, [0, 1]),
        ({"threshold_samples": 601}, []),
        ({"regex": ".*hybridsequential0_input_0"}, []),
        ({"regex": "x, Net"}, [1]),
        ({"channel": "", "literal": "no"}, [1]),
    ],
)
def test_parameters_may_be_text(params: dict[str, Any], met: list[int], tmp_path: Path) -> None:
    assert judged(tmp_path, [images(1, number=300)] * 2, **params).met == met


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"threshold_mean": -1}, r"'threshold_mean' must be a finite number >= 0, got -1\.$"),
        (
            {"threshold_samples": "0"},
            r"'threshold_samples' must be a whole number >= 1, got '0'\.$",
        ),
        ({"threshold_samples": 1.5}, r"'threshold_samples' must be a whole number"),
        ({"channel": 0}, r"'channel' must be a whole number >= 1, got 0\.$"),
        ({"regex": "("}, r"'regex' must be comma-separated regular expressions, got '\('"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=f"^Parameter {message}"):
        judged(tmp_path, [], **params)


def test_what_a_loss_takes_is_no_image(tmp_path: Path) -> None:
    writer = TrialWriter(tmp_path, collections={"losses": "_output_0$"})
    writer.step(0, {"Overlap_input_0": images(4.0), "Overlap_output_0": 1.0})
    writer.close()
    assert judge(CheckInputImages, tmp_path).skipped == {0: NO_IMAGES}
