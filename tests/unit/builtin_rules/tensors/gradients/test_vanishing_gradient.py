"""VanishingGradient: which gradients meet the condition, at which steps, with what evidence."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, save

from builtin_rules import VanishingGradient
from builtin_rules.statistics.lasting_zeros import IDLE
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

NAME = "gradient/fc.weight"


def matrix(value: float, dtype: Any = np.float64) -> "np.ndarray":
    return np.full((2, 1), value, dtype)


def judged(root: Path, values: list[Any], **params: Any) -> Judged:
    """Judge one gradient, saved at steps 0, 1, 2...; None leaves a step without it."""
    steps = {
        at: {"fc.weight": np.ones(2)} if value is None else {NAME: value}
        for at, value in enumerate(values)
    }
    return judge(VanishingGradient, save(root, steps), **params)


@pytest.mark.parametrize(
    ("values", "met"),
    [
        pytest.param([1e-3, 1e-5, 5e-9], [2], id="falls-below"),
        pytest.param([5e-9, 1e-3, 5e-9], [0, 2], id="each-step-by-itself"),
        pytest.param([1e-7], [], id="equal-is-not-below"),
        pytest.param([-1e-3, -5e-9], [1], id="magnitudes"),
        pytest.param([np.nan, np.inf, -np.inf], [], id="not-finite"),
        pytest.param([5e-9], [0], id="one-step"),
        pytest.param([1e-3, None, 5e-9], [2], id="missing-at-a-step"),
    ],
)
@pytest.mark.parametrize("literal", [False, True])
def test_it_is_met_where_the_mean_magnitude_is_below(
    values: list[float | None], met: list[int], literal: bool, tmp_path: Path
) -> None:
    arrays = [None if value is None else matrix(value) for value in values]
    assert judged(tmp_path, arrays, literal=literal).met == met


@pytest.mark.parametrize(
    ("later", "recovered_at"),
    [
        pytest.param([1e-3] * 25, [21], id="stays"),
        pytest.param([1e-3] * 19, [], id="19-rows"),
        pytest.param([1e-3] * 19 + [1e-7] + [1e-3] * 20, [41], id="at-the-limit"),
        pytest.param([1e-3] * 10 + [None] * 5 + [1e-3] * 10, [26], id="missing"),
        pytest.param([np.nan] * 25, [], id="nan"),
    ],
)
def test_a_gradient_that_stays_above_the_threshold_has_recovered(
    later: list[Any], recovered_at: list[int], tmp_path: Path
) -> None:
    arrays = [None if value is None else matrix(value) for value in (1e-3, 5e-9, *later)]
    findings = judged(tmp_path, arrays).findings
    assert [found.step for found in findings if found.recovered_at is not None] == recovered_at


def test_the_mean_is_taken_of_magnitudes_not_of_values(tmp_path: Path) -> None:
    assert judged(tmp_path, [np.array([[1.0, -1.0]])]).met == []


def test_one_nan_hides_nothing_and_meets_nothing(tmp_path: Path) -> None:
    steps = {0: {NAME: np.array([[np.nan, 1e-9]]), "gradient/other.weight": matrix(1e-9)}}
    found = judge(VanishingGradient, save(tmp_path, steps))
    assert [one.tensor for one in found.findings] == ["gradient/other.weight"]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ml_dtypes.bfloat16])
def test_all_floating_point_types_are_judged(dtype: Any, tmp_path: Path) -> None:
    assert judged(tmp_path, [matrix(0.5, dtype), matrix(1e-6, dtype)], threshold=1e-4).met == [1]


def test_at_a_save_interval_of_500_the_earliest_step_is_500(tmp_path: Path) -> None:
    steps = {0: {"fc.weight": matrix(1.0)}, 500: {NAME: matrix(1e-9)}, 1000: {NAME: matrix(1e-9)}}
    found = judge(VanishingGradient, save(tmp_path, steps))
    assert (found.met, found.skipped) == ([500, 1000], {0: "no gradients at this step"})


def test_evidence_names_tensor_worker_mean_and_threshold(tmp_path: Path) -> None:
    found = judged(tmp_path, [matrix(2e-8)], threshold="1e-6")
    assert found.findings == [Finding(0, NAME, "worker_0", 2e-8, 1e-6, None, Severity.WARNING)]


@pytest.mark.parametrize("mean", [0.0, np.nextafter(1e-7, 0)])
def test_to_the_letter_the_first_step_counts_too(mean: float, tmp_path: Path) -> None:
    assert judged(tmp_path, [matrix(mean)], literal=True).met == [0]


def test_every_vanished_gradient_is_named(tmp_path: Path) -> None:
    steps = {3: {f"gradient/{one}.weight": matrix(1e-9) for one in "ab"} | {NAME: matrix(0.1)}}
    found = judge(VanishingGradient, save(tmp_path, steps))
    assert [one.tensor for one in found.findings] == ["gradient/a.weight", "gradient/b.weight"]


def test_a_gradient_that_is_exactly_zero_may_be_frozen(tmp_path: Path) -> None:
    found = judged(tmp_path, [matrix(0.0)] * 5)
    (finding,) = found.findings
    assert (found.met, found.skipped) == ([4], {})
    assert finding.note == "Exactly 0: no gradient reaches the parameter."


@pytest.mark.parametrize(
    ("means", "met"),
    [
        pytest.param([0, 0, 1, 1], [], id="zero-at-first"),
        pytest.param([1, 0, 0, 0, 0, 0, 0], [5, 6], id="zero-for-five"),
        pytest.param([0, 0, 1, *[0] * 7], [9], id="three-times-as-long-as-before"),
        pytest.param([0, 1, 1] * 4, [], id="zero-at-some-steps"),
        pytest.param([9e-8, *[1e-5] * 9], [], id="just-below-at-the-start"),
        pytest.param([1, *[9e-8] * 6], [5, 6], id="just-below-for-five"),
        pytest.param([9e-8, 9e-8, 1, 9e-8, 9e-8, 9e-8], [], id="just-below-now-and-then"),
        pytest.param([1, 5.1e-8, 4.9e-8], [2], id="below-half"),
    ],
)
def test_zeros_and_means_just_below_must_last(
    means: list[float], met: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, [matrix(mean) for mean in means]).met == met


@pytest.mark.parametrize(
    ("name", "met"),
    [
        pytest.param("gradient/attention.self.key.weight", [6], id="key"),
        pytest.param("gradient/attn.in_proj_weight", [6], id="queries-and-keys"),
        pytest.param("gradient/attn.value.weight", [0, 6], id="value"),
        pytest.param("gradient/monkey.weight", [0, 6], id="other-name"),
    ],
)
def test_queries_and_keys_of_young_transformers_have_small_gradients(
    name: str, met: list[int], tmp_path: Path
) -> None:
    means = [2e-8, 1, 1, 1, 1, 1, 2e-8]
    steps = {
        at: {name: matrix(mean), "gradient/fc.weight": matrix(1)} for at, mean in enumerate(means)
    }
    assert judge(VanishingGradient, save(tmp_path, steps)).met == met


def test_a_loss_of_zero_leaves_nothing_to_learn(tmp_path: Path) -> None:
    steps = {
        step: {NAME: matrix(0.0), "loss": np.array([loss])}
        for step, loss in enumerate([0.0] * 7 + [0.5] * 6)
    }
    found = judge(VanishingGradient, save(tmp_path, steps))
    assert found.met == [11, 12]
    assert found.skipped == dict.fromkeys(range(7), IDLE)


def test_experts_without_tokens_are_left_to_router_collapse(tmp_path: Path) -> None:
    names = ("gradient/mlp.experts.3.up.weight", "gradient/expertise.weight")
    steps = {step: {name: matrix(0.0) for name in names} for step in range(5)}
    found = judge(VanishingGradient, save(tmp_path, steps))
    assert [one.tensor for one in found.findings] == ["gradient/expertise.weight"]


def test_each_worker_is_judged(tmp_path: Path) -> None:
    save(tmp_path, {0: {NAME: matrix(1.0)}}, num_workers=2)
    save(tmp_path, {0: {NAME: matrix(1e-9)}}, num_workers=2, worker="worker_1")
    found = judge(VanishingGradient, tmp_path)
    assert [(one.tensor, one.worker) for one in found.findings] == [(NAME, "worker_1")]


# -- biases and norm layers ----------------------------------------------------------------------

BATCH_NORM = {"conv.weight": (0.12, 4), "conv.bias": (3e-8, 1), "bn.weight": (0.02, 1)}


@pytest.mark.parametrize(
    ("gradients", "found"),
    [
        pytest.param(BATCH_NORM, [], id="bias-before-batch-norm"),
        pytest.param({"attn.key.weight": (0.1, 2), "attn.key.bias": (1e-9, 1)}, [], id="key-bias"),
        pytest.param(
            {"conv.weight": (1e-9, 2), "conv.bias": (1e-9, 1), "fc.weight": (0.1, 2)},
            ["conv.bias", "conv.weight"],
            id="the-whole-layer",
        ),
        pytest.param(
            {"conv.weight": (1e-9, 2), "conv.bias": (0.1, 1)}, ["conv.weight"], id="weight-alone"
        ),
        pytest.param(
            {"norm.weight": (1e-9, 1), "norm.bias": (1e-9, 1), "fc.weight": (0.1, 2)},
            ["norm.bias", "norm.weight"],
            id="a-norm-layer-as-a-whole",
        ),
        pytest.param(
            {"norm.weight": (0.1, 1), "norm.bias": (1e-9, 1), "fc.weight": (0.1, 2)},
            [],
            id="half-a-norm-layer",
        ),
        pytest.param(
            {"a.weight": (0.1, 1), "b.weight": (1e-9, 1)}, ["b.weight"], id="no-others-at-all"
        ),
        pytest.param(
            {"dense/kernel:0Grad": (0.1, 2), "dense/bias:0Grad": (1e-9, 1)}, [], id="tensorflow"
        ),
        pytest.param({"conv0_weight": (0.1, 2), "conv0_bias": (1e-9, 1)}, [], id="mxnet"),
    ],
)
def test_one_dimensional_gradients_count_with_their_layer_only(
    gradients: dict[str, tuple[float, int]], found: list[str], tmp_path: Path
) -> None:
    tensors = {
        f"gradient/{name}": np.full((3,) * rank, mean) for name, (mean, rank) in gradients.items()
    }
    judgement = judge(VanishingGradient, save(tmp_path, {0: tensors}))
    assert [one.tensor for one in judgement.findings] == [f"gradient/{name}" for name in found]


def test_to_the_letter_a_bias_before_batch_norm_meets_it(tmp_path: Path) -> None:
    tensors = {
        f"gradient/{name}": np.full((3,) * rank, mean) for name, (mean, rank) in BATCH_NORM.items()
    }
    found = judge(VanishingGradient, save(tmp_path, {0: tensors}), literal="yes")
    assert [one.tensor for one in found.findings] == ["gradient/conv.bias"]


def test_a_layer_of_one_worker_does_not_speak_for_another(tmp_path: Path) -> None:
    for worker, weight in (("worker_0", 0.1), ("worker_1", 1e-9)):
        tensors = {NAME: matrix(weight), "gradient/fc.bias": np.array([1e-9])}
        tensors["gradient/head.weight"] = matrix(0.1)
        save(tmp_path, {0: tensors}, num_workers=2, worker=worker)
    found = judge(VanishingGradient, tmp_path)
    assert [(one.tensor, one.worker) for one in found.findings] == [
        ("gradient/fc.bias", "worker_1"),
        (NAME, "worker_1"),
    ]


# -- reductions only -----------------------------------------------------------------------------


def test_a_saved_mean_of_magnitudes_is_judged(tmp_path: Path) -> None:
    means = {at: {NAME: {("mean", True): mean}} for at, mean in enumerate([1e-3, 1e-9])}
    assert judge(VanishingGradient, save(tmp_path, {}, reductions=means)).met == [1]


def test_a_saved_shape_tells_that_reductions_are_those_of_a_bias(tmp_path: Path) -> None:
    means = {
        0: {NAME: {("mean", True): 0.1}, "gradient/fc.bias": {("mean", True): 1e-9}},
    }
    shapes = {NAME: (4, 4), "gradient/fc.bias": (4,)}
    save(tmp_path / "shapes", {}, reductions=means, shapes=shapes)
    save(tmp_path / "none", {}, reductions=means)
    assert judge(VanishingGradient, tmp_path / "shapes").met == []
    assert judge(VanishingGradient, tmp_path / "none").met == [0]


def test_other_reductions_do_not_tell(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={7: {NAME: {("mean", False): 0.0, ("max", True): 0.0}}})
    found = judge(VanishingGradient, tmp_path)
    assert (found.met, found.skipped) == ([], {7: "no mean of |g|"})


@pytest.mark.parametrize("value", [np.zeros((0, 3)), np.array(["text"])], ids=["empty", "text"])
def test_a_gradient_without_numbers_is_not_judged(value: "np.ndarray", tmp_path: Path) -> None:
    found = judged(tmp_path, [value])
    assert (found.met, found.skipped) == ([], {0: "no mean of |g|"})


# -- parameters ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threshold", "met"), [("", [1]), ("None", [1]), ("0.5", [0, 1]), (0, []), ("1e-9", [])]
)
def test_the_threshold_may_be_text(threshold: Any, met: list[int], tmp_path: Path) -> None:
    assert judged(tmp_path, [matrix(1e-3), matrix(5e-9)], threshold=threshold).met == met


@pytest.mark.parametrize("threshold", ["-1", "many", float("nan"), True, "inf"])
def test_a_bad_threshold_is_refused(threshold: Any, tmp_path: Path) -> None:
    message = r"Parameter 'threshold' must be a finite number >= 0, got .*\."
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, [matrix(1.0)], threshold=threshold)


@pytest.mark.parametrize(
    ("small", "large", "met"),
    [
        pytest.param([1e-9] * 2, [1e-2] * 2, [0, 1], id="clearly"),
        pytest.param([9e-8] * 6, [1e-2] * 6, [4, 5], id="just-below"),
        pytest.param([1e-9] * 6, [1e-7] * 6, [], id="all-are-small"),
        pytest.param([9e-8] * 6, [1e-2] * 4 + [8e-5] * 2, [], id="beside-small-ones-at-last"),
    ],
)
def test_by_default_it_must_be_far_below_others(
    small: list[float], large: list[float], met: list[int], tmp_path: Path
) -> None:
    steps = {
        at: {NAME: matrix(value), "gradient/head.weight": matrix(other)}
        for at, (value, other) in enumerate(zip(small, large, strict=True))
    }
    assert judge(VanishingGradient, save(tmp_path, steps)).met == met


@pytest.mark.parametrize("name", ["router.weight", "experts.0.weight", "mlp.gate.weight"])
def test_routers_and_experts_are_not_judged(name: str, tmp_path: Path) -> None:
    steps = {at: {f"gradient/{name}": matrix(1e-12), NAME: matrix(1e-2)} for at in range(6)}
    assert judge(VanishingGradient, save(tmp_path, steps)).met == []


@pytest.mark.parametrize(
    ("means", "losses", "met"),
    [
        pytest.param([1e-9] * 12, [1.0] * 12, [9, 10, 11, 12, 13, 14], id="from-the-start"),
        pytest.param([1e-9] * 12, [1.0] * 5 + [0.5] * 7, [], id="the-loss-falls"),
        pytest.param([1e-3] + [1e-9] * 11, [1.0] * 12, [], id="not-from-the-start"),
    ],
)
def test_all_gradients_may_be_small_from_the_start(
    means: list[float], losses: list[float], met: list[int], tmp_path: Path
) -> None:
    steps = {
        at: {NAME: matrix(mean), "gradient/head.weight": matrix(2 * mean), "loss": loss}
        for at, (mean, loss) in enumerate(
            zip(means + [1e-9] * 3, losses + losses[-1:] * 3, strict=True)
        )
    }
    assert judge(VanishingGradient, save(tmp_path, steps)).met == met


@pytest.mark.parametrize(
    ("loss", "met"),
    [pytest.param(0.03, [8, 9], id="falls"), pytest.param(0.004, [], id="solved")],
)
def test_a_solved_task_has_small_gradients(loss: float, met: list[int], tmp_path: Path) -> None:
    steps = {
        at: {
            NAME: matrix(1e-9 if at >= 8 else 1e-3),
            "gradient/head.weight": matrix(1e-3),
            "loss": np.array([loss if at >= 5 else 1.0]),
        }
        for at in range(10)
    }
    assert judge(VanishingGradient, save(tmp_path, steps)).met == met
