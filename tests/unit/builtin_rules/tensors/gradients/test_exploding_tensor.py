"""ExplodingTensor: which NaN and infinities meet the condition, at which steps, how shown."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from judging import Judged, judge, judge_to_the_end, opened, save
from judging_rows import judge_rows, rows_of, verdicts

from builtin_rules import ExplodingTensor
from smdebug.core.modes import ModeKeys
from smdebug.core.writer import TrialWriter
from smdebug.exceptions import SMDebugValueError
from smdebug.rules.extensions import Finding, Severity

NAN, INF = np.nan, np.inf


def judged(root: Path, values: list[Any], **params: Any) -> Judged:
    """Judge one tensor, saved at steps 0, 1, 2...; None leaves a step without it."""
    steps = {
        at: {"count": np.ones(2, np.int64)} if value is None else {"w": np.array(value)}
        for at, value in enumerate(values)
    }
    return judge(ExplodingTensor, save(root, steps), **params)


@pytest.mark.parametrize(
    ("values", "met", "met_by_nan"),
    [
        pytest.param([[1.0], [NAN], [1.0]], [1], [1], id="nan-at-that-step"),
        pytest.param([[1.0, 2.0], [1.0, INF]], [1], [], id="infinity"),
        pytest.param([[1.0], [-INF, 1.0]], [1], [], id="minus-infinity"),
        pytest.param([[INF, -INF]], [0], [], id="infinities-that-cancel"),
        pytest.param([[INF, NAN]], [0], [0], id="both"),
        pytest.param([[[[NAN]]], [[[1.0]]]], [0], [0], id="three-dimensions"),
        pytest.param([NAN], [0], [0], id="no-dimension"),
        pytest.param([[1.0], None, [NAN]], [2], [2], id="missing-at-a-step"),
        pytest.param([[1.7e308, 1.7e308]], [], [], id="a-sum-that-overflows"),
        pytest.param([[]], [], [], id="empty"),
        pytest.param([[complex(1, NAN)], [complex(INF, 1)]], [0, 1], [0], id="complex"),
    ],
)
def test_it_is_met_where_a_tensor_is_not_finite(
    values: list[Any], met: list[int], met_by_nan: list[int], tmp_path: Path
) -> None:
    assert judged(tmp_path, values).met == met
    assert judge(ExplodingTensor, tmp_path, only_nan="True").met == met_by_nan


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, ml_dtypes.bfloat16])
def test_all_floating_point_types_are_judged(dtype: Any, tmp_path: Path) -> None:
    values = [np.array([1.0, bad], dtype) for bad in (1.0, NAN, INF)]
    assert judged(tmp_path, values).met == [1, 2]


def test_half_precision_whose_sum_overflows_is_healthy(tmp_path: Path) -> None:
    assert judged(tmp_path, [np.full(10, 60000.0, np.float16)]).met == []


@pytest.mark.parametrize(
    "value", [np.array([1]), np.array([True]), np.array(["nan"])], ids=["int", "bool", "text"]
)
def test_what_is_no_floating_point_is_not_judged(value: Any, tmp_path: Path) -> None:
    found = judged(tmp_path, [value])
    assert (found.met, found.skipped) == ([], {0: "no floating-point tensor at this step"})


def test_evidence_counts_the_elements(tmp_path: Path) -> None:
    note = "1 NaN and 2 infinite of 4 elements."
    assert judged(tmp_path, [[NAN, INF, -INF, 0.0]]).findings == [
        Finding(0, "w", "worker_0", 3, 0, note)
    ]
    (finding,) = judge(ExplodingTensor, tmp_path, only_nan=True).findings
    assert (finding.measured, finding.note) == (1, note)


def test_each_worker_and_each_tensor_is_judged(tmp_path: Path) -> None:
    save(tmp_path, {0: {"a": 1.0, "b": NAN}}, num_workers=2)
    save(tmp_path, {0: {"a": NAN, "b": 1.0}}, num_workers=2, worker="worker_1")
    found = judge(ExplodingTensor, tmp_path)
    assert [(one.tensor, one.worker) for one in found.findings] == [
        ("a", "worker_1"),
        ("b", "worker_0"),
    ]


@pytest.mark.parametrize(
    ("params", "tensors"),
    [
        pytest.param({}, ["w", "loss", "gradient/w"], id="all-by-default"),
        pytest.param({"tensor_regex": "", "collection_names": "None"}, ["w", "loss", "gradient/w"]),
        pytest.param({"tensor_regex": "w"}, ["w", "gradient/w"], id="searched-anywhere"),
        pytest.param({"tensor_regex": "^w, loss"}, ["w", "loss"], id="two-patterns"),
        pytest.param({"collection_names": "losses"}, ["loss"], id="collection"),
        pytest.param({"collection_names": "losses,gradients"}, ["loss", "gradient/w"]),
        pytest.param({"collection_names": ["losses"], "tensor_regex": ["^w"]}, ["w", "loss"]),
        pytest.param({"collection_names": "nowhere", "tensor_regex": "^w"}, ["w"], id="unknown"),
    ],
)
def test_selectors_are_united(params: dict[str, Any], tensors: list[str], tmp_path: Path) -> None:
    save(tmp_path, {0: dict.fromkeys(("gradient/w", "loss", "w"), NAN)})
    found = judge(ExplodingTensor, tmp_path, **params)
    assert [one.tensor for one in found.findings] == tensors


def test_a_selector_that_selects_nothing_judges_nothing(tmp_path: Path) -> None:
    found = judged(tmp_path, [[NAN]], tensor_regex="nowhere")
    assert (found.met, found.skipped) == ([], {0: "no floating-point tensor at this step"})


@pytest.mark.parametrize(
    ("reduction", "value", "met", "met_by_nan"),
    [
        pytest.param(("min", False), INF, True, False, id="min"),
        pytest.param(("max", False), -INF, True, False, id="max"),
        pytest.param(("min", True), INF, True, False, id="abs-min"),
        pytest.param(("max", True), INF, True, False, id="abs-max"),
        pytest.param(("sum", False), INF, False, False, id="sums-overflow"),
        pytest.param(("l2", True), INF, False, False, id="norms-overflow"),
        pytest.param(("sum", False), NAN, True, True, id="nan-in-a-sum"),
        pytest.param(("mean", True), 1.0, False, False, id="finite"),
    ],
)
def test_saved_reductions_are_judged(
    reduction: tuple[str, bool], value: float, met: bool, met_by_nan: bool, tmp_path: Path
) -> None:
    save(tmp_path, {}, reductions={0: {"w": {reduction: value}}})
    found = judge(ExplodingTensor, tmp_path)
    assert (found.met == [0], found.skipped) == (met, {})
    assert (judge(ExplodingTensor, tmp_path, only_nan=True).met == [0]) is met_by_nan


def test_evidence_names_the_saved_reduction(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={0: {"w": {("max", True): INF}}})
    assert judge(ExplodingTensor, tmp_path).findings == [
        Finding(0, "w", "worker_0", INF, None, "Saved reduction abs_max.")
    ]


def test_saved_reductions_that_are_no_numbers_do_not_tell(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={0: {"w": {("max", True): "inf", ("min", True): [INF, NAN]}}})
    assert judge(ExplodingTensor, tmp_path).skipped == {0: "no floating-point tensor at this step"}


def test_a_value_counts_before_its_reductions(tmp_path: Path) -> None:
    reductions = {0: {"w": {("max", True): INF}}}
    assert judge(ExplodingTensor, save(tmp_path, {0: {"w": 1.0}}, reductions=reductions)).met == []


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            {"only_nan": "perhaps"},
            r"'only_nan' must be true, false, 1, 0, yes or no, got 'perhaps'",
        ),
        (
            {"tensor_regex": "("},
            r"'tensor_regex' must be comma-separated regular expressions, got '\('",
        ),
        ({"collection_names": 3}, r"'collection_names' must be comma-separated names, got 3"),
        ({"collection_names": ","}, r"'collection_names' must be comma-separated names, got ','"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], message: str, tmp_path: Path) -> None:
    with pytest.raises(SMDebugValueError, match=message):
        judged(tmp_path, [[1.0]], **params)


def test_every_count_is_measured(tmp_path: Path) -> None:
    reductions = {0: {"c": {("min", False): 1.0}}}
    root = save(tmp_path, {0: {"a": np.ones(2), "b": np.array([NAN, 1.0])}}, reductions=reductions)
    rule = ExplodingTensor(opened(root))
    rule.invoke_at_step(0)
    (found,) = rule.take_measurements()
    assert [(tensor, value, met) for (tensor, _), value, met in found.points] == [
        ("b", 1.0, True),
        ("a", 0.0, False),
        ("c", 0.0, False),
    ]


@pytest.mark.parametrize(
    ("params", "met"),
    [({}, []), ({"literal": True}, [0]), ({"tensor_regex": "trees"}, [0])],
    ids=["trees", "to-the-letter", "by-name"],
)
def test_trees_hold_nan_at_their_leaves(
    params: dict[str, Any], met: list[int], tmp_path: Path
) -> None:
    writer = TrialWriter(tmp_path, collections={"trees": "^trees/"}, end_job=False)
    writer.step(0, {"trees/Split": np.array([0.5, np.nan]), "train-rmse": np.ones(1)})
    assert judge(ExplodingTensor, tmp_path, **params).met == met


def test_to_the_letter_an_overflowed_sum_is_an_explosion(tmp_path: Path) -> None:
    save(tmp_path, {}, reductions={0: {"w": {("sum", False): INF, ("max", False): 1.0}}})
    assert judge(ExplodingTensor, tmp_path).met == []
    assert judge(ExplodingTensor, tmp_path, literal=True).met == [0]
    assert judge(ExplodingTensor, tmp_path, literal=True, only_nan=True).met == []


# -- values that pass ----------------------------------------------------------------------------

COLLECTIONS = {
    "weights": "weight$",
    "gradients": "^gradient/",
    "losses": "loss$",
    "metrics": "^precision",
    "loss_scales": "^scaler/",
}


def written(root: Path, steps: list[dict[str, Any]]) -> Path:
    writer = TrialWriter(root, collections=COLLECTIONS, end_job=False)
    for step, tensors in enumerate(steps):
        writer.step(step, {name: np.asarray(value) for name, value in tensors.items()})
    return root


def series(name: str, values: list[float], **more: list[Any]) -> list[dict[str, Any]]:
    """Return steps of one tensor and others; underscores in their names stand for slashes."""
    return [
        {name: [value, 1.0]} | {key.replace("__", "/"): row[step] for key, row in more.items()}
        for step, value in enumerate(values)
    ]


GRADIENT = "gradient/fc.weight"
SEARCH = [INF] * 6 + [1.0] * 3
LASTING = [(0, 1.0), (1, NAN), (2, NAN)]


@pytest.mark.parametrize(
    ("steps", "met"),
    [
        pytest.param(series("loss", [1, NAN, 1, 1]), [], id="a-loss-that-passes"),
        pytest.param(series("loss", [1, NAN, NAN, 1]), [2], id="a-loss-that-stays"),
        pytest.param(series("loss", [NAN, NAN, NAN]), [1, 2], id="from-the-start"),
        pytest.param(series("loss", [1, NAN, 1, NAN, 1, NAN, 1]), [5], id="three-of-ten"),
        pytest.param(series("fc.weight", [1, NAN, 1]), [1], id="a-weight"),
        pytest.param(series("fc_output_0", [1, INF, 1]), [1], id="an-activation"),
        pytest.param(series(GRADIENT, SEARCH), [], id="a-scaler-that-searches"),
        pytest.param(series(GRADIENT, [1.0, *SEARCH]), [2, 3, 4, 5, 6], id="not-at-the-start"),
        pytest.param(
            series(GRADIENT, [1.0, *SEARCH], optimizer__skipped=[0] + [1] * 6 + [0] * 3),
            [],
            id="skipped",
        ),
        pytest.param(
            series(GRADIENT, [1, INF, INF, 1], scaler__loss_scale=[8.0, 8.0, 4.0, 4.0]),
            [],
            id="a-falling-scale",
        ),
        pytest.param(
            [row | {"fc.weight": 1.0} for row in series(GRADIENT, [1.0, *SEARCH])],
            [],
            id="weights-stay-finite",
        ),
        pytest.param(series(GRADIENT, [INF] * 23), [20, 21, 22], id="never-ends"),
        pytest.param(series("precision", [NAN] * 4), [], id="a-metric-not-evaluated"),
        pytest.param(series("precision", [1, NAN, NAN]), [], id="a-metric-that-breaks"),
    ],
)
def test_what_passes_is_a_note(steps: list[dict[str, Any]], met: list[int], tmp_path: Path) -> None:
    found = judge(ExplodingTensor, written(tmp_path, steps))
    assert found.met == met
    rows = [step for step, row in enumerate(steps) for value in row.values() if not finite(value)]
    assert [one.step for one in found.findings] == rows
    errors = {one.step for one in found.findings if one.severity is Severity.ERROR}
    assert errors == {*met}
    assert judge(ExplodingTensor, tmp_path, literal=True).met == rows


def test_what_only_one_worker_says_of_its_optimizer_is_unknown_of_another(tmp_path: Path) -> None:
    gradients: dict[int, dict[str, Any]] = {step: {GRADIENT: value} for step, value in LASTING}
    save(tmp_path, gradients, num_workers=2, worker="worker_1")
    flags: dict[int, dict[str, Any]] = {
        step: {GRADIENT: [1.0], "optimizer/skipped": [0]} for step in gradients
    }
    save(tmp_path, flags, num_workers=2)
    found = judge(ExplodingTensor, tmp_path)
    assert (found.met, {one.worker for one in found.findings}) == ([2], {"worker_1"})


def finite(value: Any) -> bool:
    return bool(np.isfinite(value).all())


def test_what_is_broken_at_the_last_step_does_not_pass(tmp_path: Path) -> None:
    found = judge_to_the_end(ExplodingTensor, written(tmp_path, series("loss", [1.0, NAN])))
    assert (found.met, len(found.findings)) == ([1], 1)
    other = judge_to_the_end(ExplodingTensor, written(tmp_path / "2", series("loss", [NAN, 1.0])))
    assert other.met == []


TRAIN, EVAL = ModeKeys.TRAIN, ModeKeys.EVAL


@pytest.mark.parametrize(
    ("rows", "steps"),
    [
        pytest.param([(TRAIN, 1), (EVAL, NAN), (TRAIN, 1)], [1], id="the-last-evaluation"),
        pytest.param([(EVAL, NAN), (TRAIN, 1), (EVAL, 1), (TRAIN, 1)], [], id="evaluated-again"),
        pytest.param([(EVAL, 1), (TRAIN, NAN), (EVAL, 1)], [1], id="the-last-training-step"),
        pytest.param([(TRAIN, NAN), (EVAL, NAN), (EVAL, 1)], [0], id="each-mode-has-its-last"),
    ],
)
def test_the_last_row_of_each_mode_does_not_pass(
    rows: list[tuple[ModeKeys, float]], steps: list[int], tmp_path: Path
) -> None:
    values = {step: {"loss": np.array([value, 1.0])} for step, (_, value) in enumerate(rows)}
    save(tmp_path, values, modes={step: mode for step, (mode, _) in enumerate(rows)})
    assert [one.step for one in judge_to_the_end(ExplodingTensor, tmp_path).findings] == steps


@pytest.mark.parametrize(
    ("norms", "losses", "met"),
    [
        pytest.param([NAN] * 30, [1.0] * 30, [], id="never-defined"),
        pytest.param([1.0, *[NAN] * 3], [1.0] * 4, [2, 3], id="defined-before"),
        pytest.param([NAN] * 4, [1.0, NAN, NAN, NAN], [2, 3], id="losses-break-too"),
    ],
)
def test_a_norm_that_was_never_finite_beside_finite_losses_is_undefined(
    norms: list[float], losses: list[float], met: list[int]
) -> None:
    judged = judge_rows(ExplodingTensor, rows_of(grad_norm=norms, loss=losses))
    assert sorted({*judged.met}) == met


def test_a_gradient_has_passed_once_the_training_goes_on(tmp_path: Path) -> None:
    steps = [{GRADIENT: [1.0]}, {GRADIENT: [NAN]}, {"loss": [1.0]}]
    assert judge_to_the_end(ExplodingTensor, written(tmp_path, steps)).met == []
    assert judge_to_the_end(ExplodingTensor, written(tmp_path / "2", steps[:2])).met == [1]


def test_metrics_never_evaluated_and_skipped_updates_pass_at_the_end(tmp_path: Path) -> None:
    steps = [{"precision": [NAN], GRADIENT: [1.0]}, {"precision": [NAN], GRADIENT: [NAN]}]
    steps[1]["optimizer/skipped"] = [1]
    assert judge_to_the_end(ExplodingTensor, written(tmp_path, steps)).met == []
    again = written(tmp_path / "2", [*steps, steps[1]])
    assert [one.tensor for one in judge_to_the_end(ExplodingTensor, again).findings] == [GRADIENT]


@pytest.mark.parametrize(
    ("values", "severities"),
    [
        pytest.param([NAN, NAN, NAN, 1, 2], [Severity.NOTE] * 3, id="undefined-at-first"),
        pytest.param([NAN] * 3, [Severity.NOTE] * 3, id="never-defined"),
        pytest.param([1, NAN, NAN, NAN, 2], [Severity.NOTE] * 3, id="undefined-for-a-while"),
        pytest.param([1, INF, NAN], [Severity.NOTE] * 2 + [Severity.WARNING], id="to-the-end"),
    ],
)
@pytest.mark.parametrize("name", ["episode_len_mean", "train/explained_variance", "novelty"])
def test_a_scalar_that_is_undefined_is_no_error(
    name: str, values: list[float], severities: list[Severity]
) -> None:
    judged = judge_rows(ExplodingTensor, rows_of(**{name: values}))
    assert [severity for _, severity in verdicts(judged)] == severities


@pytest.mark.parametrize("name", ["train/value_loss", "grad_norm", "weight_norm"])
def test_a_scalar_that_training_needs_is_an_error(name: str) -> None:
    judged = judge_rows(ExplodingTensor, rows_of(**{name: [1, NAN, NAN, 1]}))
    assert Severity.ERROR in {severity for _, severity in verdicts(judged)}


# -- the order of execution ----------------------------------------------------------------------

MODULES = {f"model/execution_order/{name}": n for n, name in enumerate(("Net", "z", "m", "a"))}


@pytest.mark.parametrize(
    ("broken", "first"),
    [
        pytest.param(["a_output_0", "m_output_0", "loss", "z_output_0"], "z_output_0", id="layers"),
        pytest.param(
            ["gradient/z.weight", "gradient/a.weight"], "gradient/a.weight", id="backward"
        ),
        pytest.param(["loss", "gradient/a.weight"], "loss", id="loss-first"),
        pytest.param(["a_output_0", "m.weight"], "m.weight", id="weights-first"),
        pytest.param(["m_output_0", "m_input_0"], "m_input_0", id="input-before-output"),
    ],
)
def test_the_first_in_order_of_execution_is_named(
    broken: list[str], first: str, tmp_path: Path
) -> None:
    steps = [MODULES | dict.fromkeys(broken, 1.0), dict.fromkeys(broken, NAN)]
    steps.append(dict.fromkeys(broken, NAN))
    found = judge(ExplodingTensor, written(tmp_path, steps))
    assert found.findings[0].tensor == first
    notes = {str(one.note) for one in found.findings if one.step == 2 and one.tensor != first}
    origin = f"The first in order of execution was {first!r} at step 1."
    assert all(note.endswith(origin) for note in notes)
    assert notes


@pytest.mark.parametrize(
    ("name", "value", "met"),
    [
        ("attn_mask", [-INF, 1.0], []),
        ("m_input_0", [-INF, 0.0], []),
        ("m_input_0", [-INF, 1.0], [0]),
        ("m_input_0", [-INF, -INF], [0]),
        ("attn_mask", [-INF, NAN], [0]),
        ("attn_mask", [INF, 0.0], [0]),
        ("fc.weight", [-INF, 0.0], [0]),
    ],
)
def test_masks_hold_minus_infinity(
    name: str, value: list[float], met: list[int], tmp_path: Path
) -> None:
    assert judge(ExplodingTensor, written(tmp_path, [{name: value}])).met == met


@pytest.mark.parametrize(
    ("training", "note"),
    [
        (1.0, "The validation loss is not finite; the training loss is."),
        (np.inf, "The validation loss is not finite. The first"),
    ],
)
def test_a_validation_loss_is_told_from_a_training_loss(
    training: float, note: str, tmp_path: Path
) -> None:
    modes = {step: ModeKeys.EVAL if step % 3 == 2 else ModeKeys.TRAIN for step in range(9)}
    steps = {
        step: {"loss": np.asarray(np.nan if modes[step] is ModeKeys.EVAL else training)}
        for step in modes
    }
    found = judge(ExplodingTensor, save(tmp_path, steps, modes=modes)).findings
    notes = {finding.step: finding.note or "" for finding in found}
    assert note in notes[5]
    assert all("validation" not in notes.get(step, "") for step in (3, 4, 6, 7))
