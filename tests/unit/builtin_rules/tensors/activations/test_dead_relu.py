"""DeadRelu: which layers meet the condition, at which steps, and what a unit is."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, save
from members import save_members
from numpy.typing import NDArray

from builtin_rules import DeadRelu
from smdebug.core.modes import ModeKeys
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

NAME = "relu1_output_0"
FEW = "too few numeric samples since the last judgement"
TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL
Array = NDArray[Any]


def layer(active: list[int], rows: int = 100, dtype: Any = np.float32) -> Array:
    """Return outputs of units, each above 0 in so many of the rows."""
    outputs = np.zeros((rows, len(active)), dtype)
    for unit, number in enumerate(active):
        outputs[:number, unit] = 0.5
    return outputs


class AtOnce(DeadRelu):
    """With a warning at the first judgement of a layer that fails."""

    CERTAIN, LASTING = 0.0, 1


def at_once(root: Path, **params: Any) -> Judged:
    """Judge a trial, with a finding at the first judgement of a layer that fails."""
    return judge(AtOnce, root, **params)


def judged(root: Path, values: list[Any], name: str = NAME, **params: Any) -> Judged:
    """Judge one tensor, saved at steps 0, 1, 2...; None leaves a step without it."""
    steps = {
        at: {"fc.weight": np.ones(2)} if value is None else {name: value}
        for at, value in enumerate(values)
    }
    return at_once(save(root, steps), **params)


@pytest.mark.parametrize(
    ("values", "met"),
    [
        pytest.param([layer([50, 40]), layer([50, 0, 0])], [1], id="dies"),
        pytest.param([layer([0, 0]), layer([50, 50]), layer([0, 0])], [0, 2], id="each-by-itself"),
        pytest.param([layer([0, 50])], [], id="half-is-not-more-than-half"),
        pytest.param([layer([0, 0, 50])], [0], id="two-thirds"),
        pytest.param([layer([1, 1])], [], id="one-percent-is-active"),
        pytest.param([layer([1, 1], rows=101)], [0], id="less-than-one-percent"),
        pytest.param([layer([0])], [0], id="one-unit"),
        pytest.param([-layer([50, 50])], [0], id="below-zero-is-inactive"),
        pytest.param([np.full((100, 2), np.inf)], [], id="infinity-is-active"),
        pytest.param([np.full((100, 2), -np.inf)], [0], id="minus-infinity-is-not"),
        pytest.param([layer([50, 50]), None, layer([0, 0])], [2], id="missing-at-a-step"),
        pytest.param([np.zeros(100)], [0], id="one-dimension-is-one-unit"),
        pytest.param([layer([50])[:, 0]], [], id="one-dimension-active"),
    ],
)
@pytest.mark.parametrize("literal", [False, True])
def test_it_is_met_where_most_units_are_dead(
    values: list[Array | None], met: list[int], literal: bool, tmp_path: Path
) -> None:
    assert judged(tmp_path, values, literal=literal).met == met


def test_evidence_names_tensor_worker_share_limit_and_units(tmp_path: Path) -> None:
    found = judged(tmp_path, [layer([0, 0, 0, 9])])
    note = "3 of 4 units; samples: 100, saved steps: 1."
    assert found.findings == [Finding(0, NAME, "worker_0", 75.0, 50.0, note, Severity.WARNING)]


def test_every_dead_layer_is_named(tmp_path: Path) -> None:
    tensors = {f"relu{one}_output_0": layer([0]) for one in range(2)}
    found = at_once(save(tmp_path, {3: {**tensors, "relu2_output_0": layer([9])}}))
    assert [one.tensor for one in found.findings] == sorted(tensors)


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float64, ml_dtypes.bfloat16, np.int8, np.uint8, np.bool_]
)
def test_all_types_of_numbers_are_judged(dtype: Any, tmp_path: Path) -> None:
    values = [layer([50, 50]).astype(bool).astype(dtype), layer([0, 0]).astype(dtype)]
    assert judged(tmp_path, values).met == [1]


@pytest.mark.parametrize(
    ("active", "met"),
    [
        pytest.param([[0] * 10] * 4, [2, 3], id="lasts"),
        pytest.param([[0] * 10] * 2, [], id="too-short"),
        pytest.param([[0] * 10, [0] * 10, [50] * 10] * 2, [], id="recovers"),
        pytest.param([[0] * 9 + [50]] * 5, [], id="nine-of-ten-are-silent"),
        pytest.param([[0] * 19 + [50]] * 3, [2], id="nineteen-of-twenty"),
    ],
)
def test_by_default_nearly_all_units_must_be_dead_for_three_judgements(
    active: list[list[int]], met: list[int], tmp_path: Path
) -> None:
    steps = {at: {NAME: layer(units)} for at, units in enumerate(active)}
    found = judge(DeadRelu, save(tmp_path, steps))
    assert found.met == met
    notes = [one.step for one in found.findings if one.severity is Severity.NOTE]
    assert notes == [at for at, units in enumerate(active) if units[0] == 0 and at not in met]


# -- pooling -------------------------------------------------------------------------------------


def test_steps_are_pooled_until_there_are_a_hundred_samples(tmp_path: Path) -> None:
    found = judged(tmp_path, [layer([0, 0], rows=8)] * 26)
    assert found.met == [12, 25]
    assert found.skipped == dict.fromkeys([*range(12), *range(13, 25)], FEW)
    assert found.findings[0].note == "2 of 2 units; samples: 104, saved steps: 13."


def test_units_that_are_active_now_and_then_are_not_dead(tmp_path: Path) -> None:
    steps = [layer([0, 0], rows=20)] * 4 + [layer([2, 2], rows=20)]
    assert judged(tmp_path / "pooled", steps).met == []
    assert judged(tmp_path / "letter", steps, literal=True).met == [0, 1, 2, 3]


def test_modes_and_workers_are_pooled_apart(tmp_path: Path) -> None:
    steps = {at: {NAME: layer([0], rows=50)} for at in range(3)}
    save(tmp_path / "modes", steps, modes={0: TRAIN, 1: EVAL, 2: TRAIN})
    assert at_once(tmp_path / "modes").met == [2]
    for worker in ("worker_0", "worker_1"):
        save(tmp_path / "workers", {0: steps[0]}, num_workers=2, worker=worker)
    assert at_once(tmp_path / "workers").skipped == {0: FEW}


def test_each_worker_is_judged(tmp_path: Path) -> None:
    save(tmp_path, {0: {NAME: layer([50])}}, num_workers=2)
    save(tmp_path, {0: {NAME: layer([0])}}, num_workers=2, worker="worker_1")
    found = at_once(tmp_path)
    assert [(one.tensor, one.worker) for one in found.findings] == [(NAME, "worker_1")]


def test_another_shape_begins_a_new_pool(tmp_path: Path) -> None:
    values = [layer([0, 0], rows=60), layer([0, 0, 0], rows=60), layer([0, 0, 0], rows=60)]
    (finding,) = judged(tmp_path, values).findings
    assert (finding.step, finding.note) == (2, "3 of 3 units; samples: 120, saved steps: 2.")


def test_a_last_batch_of_fewer_rows_belongs_to_the_pool(tmp_path: Path) -> None:
    values = [layer([0], rows=64), layer([0], rows=36)]
    assert judged(tmp_path, values).met == [1]


def test_no_later_step_is_read(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    values = [layer([int(rng.integers(0, 2))] * 2, rows=int(rng.integers(5, 90))) for _ in range(9)]
    whole = judged(tmp_path / "whole", values)
    for end in range(1, len(values)):
        part = judged(tmp_path / str(end), values[:end])
        assert part.met == [step for step in whole.met if step < end]
        assert part.skipped == {at: why for at, why in whole.skipped.items() if at < end}


# -- which axis holds the units ------------------------------------------------------------------


def images(channels_last: bool, size: int = 4, channels: int = 4) -> Array:
    """Return outputs of ten images in which two of three channels, or more, are 0."""
    outputs = np.zeros((10, channels, size, size), np.float32)
    outputs[:, 0] = 1.0
    return np.moveaxis(outputs, 1, -1) if channels_last else outputs


@pytest.mark.parametrize(
    ("name", "channels_last"),
    [
        ("relu1_output_0", False),
        ("layer1.0.relu_output_1", False),
        ("relu_output_hidden", False),
        ("re_lu/outputs", True),
        ("activation_relu/outputs_1", True),
        ("conv1/Relu:0", True),
        ("relu_output", False),
    ],
)
def test_with_four_dimensions_a_unit_is_a_channel(
    name: str, channels_last: bool, tmp_path: Path
) -> None:
    (finding,) = judged(tmp_path, [images(channels_last)], name).findings
    assert (finding.measured, finding.note) == (
        75.0,
        "3 of 4 units; samples: 160, saved steps: 1.",
    )


@pytest.mark.parametrize("channels_last", [False, True])
def test_sides_of_one_length_tell_the_layout_of_other_names(
    channels_last: bool, tmp_path: Path
) -> None:
    found = judged(tmp_path, [images(channels_last, channels=5)], "my relu", tensor_regex="relu")
    assert [one.measured for one in found.findings] == [80.0]


def test_sides_that_are_all_of_one_length_tell_nothing(tmp_path: Path) -> None:
    found = judged(tmp_path, [images(channels_last=False)], "my relu", tensor_regex="relu")
    assert [one.measured for one in found.findings] == [75.0]


def test_volumes_have_channels_too(tmp_path: Path) -> None:
    outputs = images(channels_last=False)[..., np.newaxis]
    assert [one.measured for one in judged(tmp_path, [outputs]).findings] == [75.0]


def test_images_of_several_sizes_are_pooled(tmp_path: Path) -> None:
    values = [images(False, size)[:5] for size in (16, 12)]
    (finding,) = judged(tmp_path, values).findings
    assert finding.note == "3 of 4 units; samples: 2000, saved steps: 2."


def test_few_images_do_not_tell_however_many_positions_they_have(tmp_path: Path) -> None:
    found = judged(tmp_path, [images(False, 16)[:1]] * 10)
    assert (found.met, set(found.skipped)) == ([9], set(range(9)))


def test_to_the_letter_each_position_is_a_unit(tmp_path: Path) -> None:
    outputs = np.zeros((2, 4, 2, 2))
    outputs[:, :2] = 1.0
    outputs[:, 2, 0, 0] = 1.0
    found = judged(tmp_path, [outputs, np.zeros((2, 4, 2, 2))], literal=True)
    assert [one.note for one in found.findings] == ["16 of 16 units; samples: 2, saved steps: 1."]
    (finding,) = judged(tmp_path / "lower", [outputs], literal=True, threshold_layer=40).findings
    assert finding.note == "7 of 16 units; samples: 2, saved steps: 1."


@pytest.mark.parametrize(
    ("shapes", "note"),
    [
        pytest.param([(60, 4, 3)] * 2, "12 of 12 units; samples: 120, saved steps: 2.", id="fixed"),
        pytest.param(
            [(60, 9, 3), (60, 7, 3)], "3 of 3 units; samples: 420, saved steps: 1.", id="features"
        ),
        pytest.param(
            [(60, 3, 9), (60, 3, 7)], "3 of 3 units; samples: 420, saved steps: 1.", id="channels"
        ),
        pytest.param(
            [(9, 5, 3), (9, 7, 3), (9, 7, 3)],
            "3 of 3 units; samples: 126, saved steps: 2.",
            id="learned-and-pooled",
        ),
        pytest.param([(60, 5, 3), (60, 7, 4), (60, 7, 4)], "28 of 28 units; ", id="both-change"),
        pytest.param([(60, 5), (60, 7, 4), (60, 7, 4)], "28 of 28 units; ", id="a-dimension-more"),
    ],
)
def test_in_sequences_the_axis_that_does_not_change_holds_the_units(
    shapes: list[tuple[int, ...]], note: str, tmp_path: Path
) -> None:
    found = judged(tmp_path, [np.zeros(shape, np.float32) for shape in shapes])
    assert [str(one.note)[: len(note)] for one in found.findings] == [note]


# -- NaN, missing and other input ----------------------------------------------------------------


def test_nan_is_no_sample(tmp_path: Path) -> None:
    outputs = layer([0, 0, 0, 50, 50], rows=120)
    outputs[:30, :2] = np.nan  # 90 numbers, all 0: not known
    assert judged(tmp_path / "unknown", [outputs]).met == []
    outputs[20:30, :2] = 0.0
    [finding] = judged(tmp_path / "known", [outputs]).findings
    assert finding.note == "3 of 5 units; samples: 120, saved steps: 1."


def test_nan_alone_is_not_judged(tmp_path: Path) -> None:
    values = [np.full((200, 2), np.nan)] * 2
    assert judged(tmp_path, values).skipped == {0: FEW, 1: FEW}


def test_to_the_letter_nan_is_not_active(tmp_path: Path) -> None:
    assert judged(tmp_path, [np.full((10, 2), np.nan)], literal=True).met == [0]


@pytest.mark.parametrize("literal", [False, True])
@pytest.mark.parametrize(
    "value",
    [
        np.zeros((0, 3)),
        np.zeros((3, 0)),
        np.array(["text"]),
        np.zeros((100, 2), np.complex64),
    ],
    ids=["no-rows", "no-units", "text", "complex"],
)
def test_a_tensor_without_numbers_is_not_judged(
    value: Array, literal: bool, tmp_path: Path
) -> None:
    found = judged(tmp_path, [value], literal=literal)
    assert (found.met, found.skipped) == ([], {0: "no values of the tensors at this step"})


def test_reductions_do_not_tell_units_apart(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={4: {NAME: {("max", False): 0.0}}})
    found = at_once(tmp_path)
    assert found.skipped == {4: "no values of the tensors at this step"}


def test_a_number_is_one_sample_of_one_unit(tmp_path: Path) -> None:
    found = judged(tmp_path, [np.float32(0)] * 100)
    assert (found.met, len(found.skipped)) == ([99], 99)
    assert judged(tmp_path / "letter", [np.float32(0)], literal=True).met == [0]


def test_a_trial_without_relu_is_not_judged(tmp_path: Path) -> None:
    assert judged(tmp_path, [None]).skipped == {0: "no outputs of ReLU at this step"}


# -- names of frameworks -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        *(
            "relu_output",
            "conv0_relu_output_0",
            "relu0_output_0",
            "hybridsequential0_relu2_output_0",
        ),
        *("ReLU_output_0", "relu1_output_0", "conv1.relu_output_0", "layer1.0.relu_output_1"),
        *("ReLU6_output_0", "relu_2_output_0", "features.relu5_output_0", "layer_relu_output_0"),
        *("re_lu/outputs", "re_lu_1/outputs", "relu_1/outputs", "activation_relu/outputs"),
        *("conv1_relu/outputs", "block_1_expand_relu/outputs", "relu/outputs_1", "conv1/Relu:0"),
        *("up_relu_output_0", "model/Relu6_3:0", "Conv1_relu/outputs"),
    ],
)
def test_outputs_of_relu_are_found_in_every_framework(name: str, tmp_path: Path) -> None:
    assert judged(tmp_path, [layer([0])], name).met == [0]


@pytest.mark.parametrize(
    "name",
    [
        *("relu_input_0", "ReLU_input_0", "re_lu/inputs", "conv1_output_0", "gelu_output_0"),
        *(
            "leaky_relu_output_0",
            "LeakyReLU_output_0",
            "leakyrelu0_output_0",
            "leaky_re_lu/outputs",
        ),
        *(
            "prelu_output_0",
            "prelu1_output_0",
            "PReLU_output_0",
            "p_re_lu/outputs",
            "MyPReLU_output_0",
        ),
        *(
            "rrelu_output_0",
            "block.RReLU_output_0",
            "elu_output_0",
            "selu/outputs",
            "silu_output_0",
        ),
        *("gradient/relu_output_0", "relu1.weight", "relus", "Relu_grad:0"),
    ],
)
def test_other_tensors_are_not_taken_for_outputs_of_relu(name: str, tmp_path: Path) -> None:
    found = judged(tmp_path, [layer([0])], name)
    assert found.skipped == {0: "no outputs of ReLU at this step"}


def test_the_collection_of_the_hooks_belongs_to_the_default(tmp_path: Path) -> None:
    steps = {0: {"3_output_0": layer([0]), "5_output_0": layer([0])}}
    save_members(tmp_path, steps, {"3_output_0": "relu_output"})
    assert [one.tensor for one in at_once(tmp_path).findings] == ["3_output_0"]
    assert [one.tensor for one in at_once(tmp_path, tensor_regex="^5").findings] == ["5_output_0"]


# -- parameters ----------------------------------------------------------------------------------


def test_an_explicit_pattern_stands_for_itself(tmp_path: Path) -> None:
    tensors = {name: layer([0]) for name in ("leaky_relu_output_0", "ReLU_output_0", "act_1")}
    save(tmp_path, {0: tensors})
    for pattern, found in (
        (".*relu_output", ["leaky_relu_output_0"]),
        ("leaky, ^act", ["act_1", "leaky_relu_output_0"]),
        (["ReLU", "act"], ["ReLU_output_0", "act_1"]),
        ("", ["ReLU_output_0"]),
    ):
        findings = at_once(tmp_path, tensor_regex=pattern).findings
        assert [one.tensor for one in findings] == found


@pytest.mark.parametrize(
    ("params", "met"),
    [
        ({}, [0]),
        ({"threshold_inactivity": "0"}, []),
        ({"threshold_inactivity": "31"}, [0, 1]),
        ({"threshold_inactivity": 30.0}, [0]),
        ({"threshold_layer": "100"}, []),
        ({"threshold_layer": "99.9", "literal": "yes"}, [0]),
    ],
)
def test_parameters_may_be_text(params: dict[str, Any], met: list[int], tmp_path: Path) -> None:
    assert judged(tmp_path, [layer([0, 0]), layer([30, 30])], **params).met == met


@pytest.mark.parametrize("value", ["-1", "101", "many", float("nan"), True])
@pytest.mark.parametrize("name", ["threshold_inactivity", "threshold_layer"])
def test_a_bad_percentage_is_refused(name: str, value: Any, tmp_path: Path) -> None:
    message = rf"^Parameter '{name}' must be a finite number in \[0, 100\], got .*\.$"
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, [], **{name: value})


def test_a_pattern_that_does_not_compile_is_refused(tmp_path: Path) -> None:
    message = (
        r"^Parameter 'tensor_regex' must be comma-separated regular expressions, got '\('.*\.$"
    )
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, [], tensor_regex="(")
