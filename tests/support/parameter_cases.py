"""Each documented parameter of SageMaker's rules at its border: a small trial, and two values.

`TENSOR_CASES` are those of rules over tensors. scripts/parameter_table makes docs/parameters.md of
all cases, and tests judge them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import rawtrial
from fake_profiler_trial import FakeProfilerTrial
from judging import opened, save
from timed import files

from rule_runner.engine.invocation import InProcessInvoker, InvocationOutcome
from rule_runner.loading.loader import load_builtin
from rule_runner.loading.parameters import bind, construct, other_trials
from smdebug.core.modes import ModeKeys

ROOT: Final = "RUNS"  # in a value, the folder of the trials


@dataclass(frozen=True, slots=True)
class Case:
    """A documented parameter, and the verdicts that follow from its sentence.

    Parameters
    ----------
    sentence
        What the parameter means.
    trial
        What the trial holds, in words.
    make
        Writes the trial below a folder, or returns one in memory.
    met, clear
        Values with which the condition is met, and is not.
    others
        Further parameters, the same for all values.
    """

    rule: str
    parameter: str
    sentence: str
    trial: str
    make: Callable[[Path], Path | FakeProfilerTrial]
    met: Sequence[str] = ()
    clear: Sequence[str] = ()
    others: Mapping[str, str] = field(default_factory=dict)

    def is_met(self, value: str, root: Path) -> bool:
        """Return whether the rule has a finding with a value, as in a job: a warning or error."""
        made = self.make(root)
        given = {**self.others, self.parameter: value}
        texts = {name: text.replace(ROOT, str(root)) for name, text in given.items()}
        loaded = load_builtin(self.rule)
        trial: Any = opened(made) if isinstance(made, Path) else made
        others = [opened(Path(path)) for path in other_trials(loaded, texts)]
        rule = construct(bind(loaded, texts), trial, others)
        rule.output_dir = root / "report"
        invoker = InProcessInvoker(self.rule, rule, [trial])
        outcomes = [*_judged(invoker, trial)]
        assert InvocationOutcome.FAILED not in [one.did for one in outcomes], outcomes
        return any(one.did is InvocationOutcome.MET for one in outcomes)


def _judged(invoker: InProcessInvoker, trial: Any) -> Any:
    """Yield what a rule says at each step or window, and at the end."""
    last = 0
    if isinstance(trial, FakeProfilerTrial):
        while (result := invoker.judge(last)).did is not InvocationOutcome.ENDED:
            yield result
            last += 1
        last -= 1
    else:
        for last in trial.steps():
            yield invoker.judge(last)
    yield invoker.finish(last)


def saved(
    *rows: Mapping[str, Any],
    steps: Sequence[int] = (),
    modes: str = "",
    collections: Mapping[str, str] | None = None,
    name: str = "run",
) -> Callable[[Path], Path]:
    """Return a function that saves rows of tensors, by default at the steps 0, 1, 2 and so on.

    Parameters
    ----------
    modes
        A letter of each row: T for training, E for evaluation.
    """
    by_letter = {"T": ModeKeys.TRAIN, "E": ModeKeys.EVAL}

    def make(root: Path) -> Path:
        at = steps or range(len(rows))
        content = {
            step: {name: np.asarray(value) for name, value in row.items()}
            for step, row in zip(at, rows, strict=True)
        }
        of_mode = {step: by_letter[letter] for step, letter in zip(at, modes, strict=False)}
        return save(root / name, content, modes=of_mode or None, collections=collections)

    return make


def both(first: Callable[[Path], Path], *rest: Callable[[Path], Path]) -> Callable[[Path], Path]:
    """Return a function that saves several trials, and returns the first."""

    def make(root: Path) -> Path:
        for other in rest:
            other(root)
        return first(root)

    return make


def series(name: str, *values: float) -> list[dict[str, Any]]:
    return [{name: np.array([value])} for value in values]


def beside(*columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows with the tensors of several."""
    return [
        {name: one for row in rows for name, one in row.items()}
        for rows in zip(*columns, strict=True)
    ]


def matrix(variance: float) -> "np.ndarray[Any, Any]":
    """Return a tensor of this variance."""
    return np.array([[-1.0, 1.0]]) * variance**0.5


def labelled(labels: Any, predictions: Any, **names: str) -> dict[str, Any]:
    return {
        names.get("labels", "labels"): np.asarray(labels),
        names.get("predictions", "predictions"): np.asarray(predictions),
    }


def active(shares: Sequence[int], rows: int, on: float, off: float) -> "np.ndarray[Any, Any]":
    """Return units of which each is active in so many of the rows."""
    return np.where(np.arange(rows)[:, None] < np.asarray(shares), on, off)


GOOD_AND_BAD: Final = {"good": "^good", "bad": "^bad"}
COLLECTIONS: Final = "Collections whose tensors are examined."
PATTERNS: Final = "Patterns; a tensor is examined if one of them is found in its name."
HALF_DEAD: Final = active([0, 0, 9, 9], 10, 1.0, 0.0)
BALANCED: Final = [0] * 50 + [1] * 50
ODD: Final = [0] * 80 + [1] * 20
ONE_IN_FIVE: Final = {"predictions": [0] * 10 + [1] * 8 + [0] * 2, "labels": [0] * 10 + [1] * 10}
WHITE: Final = np.full((10, 3, 4, 4), 0.25)


def images(mean: float) -> "np.ndarray[Any, Any]":
    return np.full((10, 3, 4, 4), mean)


def importances(kind: str, *shares: float) -> dict[str, Any]:
    return {f"feature_importance/{kind}/f{at}": np.array([one]) for at, one in enumerate(shares)}


_GRADIENTS: Final = (
    Case(
        "VanishingGradient",
        "threshold",
        "A gradient has vanished if the mean of its magnitudes is smaller than this.",
        "one step with a gradient of 1e-6 throughout",
        saved({"gradient/fc": np.full((2, 2), 1e-6)}),
        met=["1.01e-6"],
        clear=["1e-6"],
    ),
    *(
        Case(
            "ExplodingTensor",
            name,
            sentence,
            "two steps with NaN in the tensor bad and none in the tensor good",
            saved(*[{"good": np.ones(2), "bad": np.full(2, np.nan)}] * 2, collections=GOOD_AND_BAD),
            met=["bad"],
            clear=["good"],
        )
        for name, sentence in (("collection_names", COLLECTIONS), ("tensor_regex", PATTERNS))
    ),
    Case(
        "ExplodingTensor",
        "only_nan",
        "Whether NaN alone counts, and infinity does not.",
        "two steps with a loss of infinity",
        saved(*series("loss", np.inf, np.inf)),
        met=["False"],
        clear=["True"],
    ),
    Case(
        "TensorVariance",
        "max_threshold",
        "Met if a variance is above this.",
        "one step with a variance of 4",
        saved({"weight": matrix(4)}),
        met=["3.99"],
        clear=["4"],
        others={"tensor_regex": "weight"},
    ),
    Case(
        "TensorVariance",
        "min_threshold",
        "Met if a variance is below this.",
        "one step with a norm layer's scale of ones, whose variance is 0",
        saved({"norm.weight": np.ones(4)}),
        met=["1e-9"],
        clear=["0"],
        others={"collection_names": "weights"},
    ),
    *(
        Case(
            "TensorVariance",
            name,
            sentence,
            "one step with variances of 1 (good) and 16 (bad)",
            saved({"good": matrix(1), "bad": matrix(16)}, collections=GOOD_AND_BAD),
            met=["bad"],
            clear=["good"],
            others={"max_threshold": "10"},
        )
        for name, sentence in (("collection_names", COLLECTIONS), ("tensor_regex", PATTERNS))
    ),
    Case(
        "AllZero",
        "threshold",
        "The percentage of zeros from which a tensor is reported.",
        "the first step with a bias of three zeros and a one",
        saved({"fc.bias": np.array([0.0, 0.0, 0.0, 1.0])}),
        met=["75"],
        clear=["75.1"],
        others={"collection_names": "biases"},
    ),
    *(
        Case(
            "AllZero",
            name,
            sentence,
            "one step with zeros (bad) and ones (good)",
            saved({"good": np.ones(2), "bad": np.zeros(2)}, collections=GOOD_AND_BAD),
            met=["bad"],
            clear=["good"],
        )
        for name, sentence in (("collection_names", COLLECTIONS), ("tensor_regex", PATTERNS))
    ),
)
_WEIGHTS: Final = (
    Case(
        "PoorWeightInitialization",
        "activation_inputs_regex",
        "Which tensors are inputs of activation functions.",
        "one step with variances of 3 and 300 (bad_0, bad_1), and of 3 and 4 (good_0, good_1)",
        saved({"bad_0": matrix(3), "bad_1": matrix(300), "good_0": matrix(3), "good_1": matrix(4)}),
        met=["^bad"],
        clear=["^good"],
    ),
    Case(
        "PoorWeightInitialization",
        "threshold",
        "Largest ratio allowed between the highest and the lowest variance of activation inputs.",
        "one step with variances of 2, 5 and 32",
        saved({f"relu{at}_input_0": matrix(one) for at, one in enumerate((2, 5, 32))}),
        met=["15.99"],
        clear=["16"],
    ),
    Case(
        "PoorWeightInitialization",
        "distribution_range",
        "Smallest distance allowed between the 5th and the 95th percentile of a gradient.",
        "one step with a gradient whose percentiles are 0.9 apart",
        saved({"gradient/fc": np.linspace(0, 1, 101).reshape(1, -1)}),
        met=["0.91"],
        clear=["0.89"],
    ),
    Case(
        "PoorWeightInitialization",
        "patience",
        "Number of steps after which a loss that has not gone down is stuck.",
        "four steps with a loss of 1",
        saved(*series("loss", 1, 1, 1, 1)),
        met=["3"],
        clear=["4"],
    ),
    Case(
        "PoorWeightInitialization",
        "steps",
        "How many early steps are looked at.",
        "three steps with variances of 2 and 3, the last one with 2 and 200",
        saved(*[{"relu0_input_0": matrix(2), "relu1_input_0": matrix(one)} for one in (3, 3, 200)]),
        met=["3"],
        clear=["2"],
        others={"threshold": "10"},
    ),
    Case(
        "WeightUpdateRatio",
        "num_steps",
        "A weight is compared with one saved at most so many steps earlier.",
        "a weight of 1 at the steps 0 and 3",
        saved({"weight": np.ones((2, 2))}, {"weight": np.ones((2, 2))}, steps=[0, 3]),
        met=["3"],
        clear=["2"],
    ),
    Case(
        "WeightUpdateRatio",
        "large_threshold",
        "Largest ratio of update to weight allowed.",
        "two steps with a weight of 1e-3, then 3e-3",
        saved({"weight": np.full((2, 2), 1e-3)}, {"weight": np.full((2, 2), 3e-3)}),
        met=["1.99"],
        clear=["2"],
    ),
    Case(
        "WeightUpdateRatio",
        "small_threshold",
        "Smallest ratio of update to weight allowed.",
        "two steps with a weight of 1, then 1.01",
        saved({"weight": np.ones((2, 2))}, {"weight": np.full((2, 2), 1.01)}),
        met=["0.011"],
        clear=["0.009"],
    ),
    Case(
        "WeightUpdateRatio",
        "epsilon",
        "Added to the norm of the weight, by which the update is divided.",
        "two steps with a weight of norm 0, then 1",
        saved({"weight": np.zeros((1, 1))}, {"weight": np.ones((1, 1))}),
        met=["0.05"],
        clear=["0.1"],
    ),
    Case(
        "UnchangedTensor",
        "num_steps",
        "How many of the latest saved values are compared, the current one included.",
        "three steps with a weight of 1, while evaluating",
        saved(*[{"weight": np.ones((2, 2))}] * 3, modes="EEE"),
        met=["3"],
        clear=["4"],
        others={"collection_names": "weights"},
    ),
    Case(
        "UnchangedTensor",
        "rtol",
        "Relative tolerance of the comparison.",
        "two steps with a weight of 0.99, then 1",
        saved({"weight": np.full(2, 0.99)}, {"weight": np.ones(2)}),
        met=["0.011"],
        clear=["0.009"],
        others={"collection_names": "weights", "num_steps": "2"},
    ),
    Case(
        "UnchangedTensor",
        "atol",
        "Absolute tolerance of the comparison.",
        "two steps with a weight of 0.01, then 0",
        saved({"weight": np.full(2, 0.01)}, {"weight": np.zeros(2)}),
        met=["0.011"],
        clear=["0.009"],
        others={"collection_names": "weights", "num_steps": "2"},
    ),
    Case(
        "UnchangedTensor",
        "equal_nan",
        "Whether NaN equals NaN.",
        "two steps with a weight of NaN",
        saved(*[{"weight": np.full(2, np.nan)}] * 2),
        met=["True"],
        clear=["False"],
        others={"collection_names": "weights", "num_steps": "2"},
    ),
    *(
        Case(
            "UnchangedTensor",
            name,
            sentence,
            "three steps with 1, 1, 1 (bad) and 1, 2, 3 (good)",
            saved(
                *beside(series("bad", 1, 1, 1), series("good", 1, 2, 3)), collections=GOOD_AND_BAD
            ),
            met=["bad"],
            clear=["good"],
        )
        for name, sentence in (("collection_names", COLLECTIONS), ("tensor_regex", PATTERNS))
    ),
    *(
        Case(
            "SimilarAcrossRuns",
            name,
            sentence,
            "one step with 1 (good) and 1 (bad); the other run has 1 and 2",
            both(
                saved({"good": np.ones(1), "bad": np.ones(1)}, collections=GOOD_AND_BAD),
                saved({"good": np.ones(1), "bad": np.full(1, 2.0)}, name="other"),
            ),
            met=["bad"],
            clear=["good"],
            others={"other_trials": f"{ROOT}/other"},
        )
        for name, sentence in (("collection_names", COLLECTIONS), ("tensor_regex", PATTERNS))
    ),
    Case(
        "SimilarAcrossRuns",
        "other_trials",
        "The run to compare with.",
        "one step with 1; the run same has 1, the run other has 2",
        both(
            saved({"a": np.ones(1)}),
            saved({"a": np.ones(1)}, name="same"),
            saved({"a": np.full(1, 2.0)}, name="other"),
        ),
        met=[f"{ROOT}/other"],
        clear=[f"{ROOT}/same"],
    ),
)


def _bound(kind: str, side: str, sign: int, border: int) -> Case:
    inside, outside = border + sign, border
    return Case(
        "SaturatedActivation",
        f"threshold_{kind}_{side}",
        f"{'Lower' if side == 'min' else 'Upper'} end of the range of inputs of {kind} that are "
        "not saturated.",
        f"one step with inputs of {border} in a batch of four",
        saved({f"{kind}_input": np.full((4, 3), float(border))}),
        met=[str(outside)],
        clear=[str(inside)],
    )


_UNITS: Final = (
    *(_bound(kind, "min", -1, -5) for kind in ("tanh", "sigmoid")),
    *(_bound(kind, "max", 1, 5) for kind in ("tanh", "sigmoid")),
    *(
        Case(
            "SaturatedActivation",
            name,
            sentence,
            "one step with inputs of tanh that are 0 (good) and 20 (bad), in a batch of four",
            saved(
                {"good_tanh": np.zeros((4, 3)), "bad_tanh": np.full((4, 3), 20.0)},
                collections=GOOD_AND_BAD,
            ),
            met=["bad"],
            clear=["good"],
            others={"threshold_layer": "50"},
        )
        for name, sentence in (("collection_names", COLLECTIONS), ("tensor_regex", PATTERNS))
    ),
    Case(
        "SaturatedActivation",
        "threshold_inactivity",
        "A unit is saturated if a smaller percentage of its inputs is within the range.",
        "one step with four units that are within the range in one of ten rows",
        saved({"tanh_input": active([1] * 4, 10, 0.0, 20.0)}),
        met=["10.1"],
        clear=["10"],
    ),
    Case(
        "SaturatedActivation",
        "threshold_layer",
        "A layer fails if a larger percentage of its units is saturated.",
        "one step with four units, of which two are saturated, in a batch of ten",
        saved({"tanh_input": active([0, 0, 9, 9], 10, 0.0, 20.0)}),
        met=["49"],
        clear=["50"],
    ),
    Case(
        "DeadRelu",
        "tensor_regex",
        PATTERNS,
        "one step with outputs of 1 (good) and 0 (bad), in a batch of four",
        saved({"good": np.ones((4, 3)), "bad": np.zeros((4, 3))}),
        met=["bad"],
        clear=["good"],
        others={"threshold_layer": "50"},
    ),
    Case(
        "DeadRelu",
        "threshold_inactivity",
        "A unit is dead if a smaller percentage of its outputs is active.",
        "one step with four units that are active in one of ten rows",
        saved({"relu_output": active([1] * 4, 10, 1.0, 0.0)}),
        met=["10.1"],
        clear=["10"],
    ),
    Case(
        "DeadRelu",
        "threshold_layer",
        "A layer fails if a larger percentage of its units is dead.",
        "one step with four units, of which two are dead, in a batch of ten",
        saved({"relu_output": HALF_DEAD}),
        met=["49"],
        clear=["50"],
    ),
)
_DATA: Final = (
    Case(
        "ClassImbalance",
        "threshold_imbalance",
        "Largest ratio accepted of the largest to the smallest class.",
        "80 labels of one class and 20 of another, predicted correctly",
        saved(labelled(ODD, ODD)),
        met=["3.99"],
        clear=["4"],
        others={"samples": "100"},
    ),
    Case(
        "ClassImbalance",
        "threshold_misprediction",
        "Largest share accepted of wrong predictions within a class.",
        "500 labels, half of each class; of the second class, 125 are mispredicted",
        saved(labelled([0] * 250 + [1] * 250, [0] * 375 + [1] * 125)),
        met=["0.49"],
        clear=["0.5"],
    ),
    Case(
        "ClassImbalance",
        "samples",
        "Number of labels to collect before anything is judged.",
        "20 labels, 19 of one class and one of another",
        saved(labelled([0] * 19 + [1], [0] * 19 + [1])),
        met=["20"],
        clear=["21"],
    ),
    Case(
        "ClassImbalance",
        "argmax",
        "Whether the index of the largest score of a row is its prediction.",
        "100 labels of two classes, and three scores for each, of which the third is the largest",
        saved(labelled(BALANCED, np.eye(3)[[2] * 100])),
        met=["True"],
        clear=["False"],
        others={"samples": "100"},
    ),
    *(
        Case(
            "ClassImbalance",
            f"{kind}_regex",
            f"Which tensors are {kind}.",
            f"100 {kind} that are right (good) or wrong (bad) beside those of the other kind",
            saved(
                labelled(BALANCED, BALANCED)
                | {
                    f"good_{kind[:5]}": np.array(BALANCED),
                    f"bad_{kind[:5]}": np.array([*BALANCED[::-1]]),
                }
            ),
            met=["^bad"],
            clear=["^good"],
            others={"samples": "100"},
        )
        for kind in ("labels", "predictions")
    ),
    Case(
        "CheckInputImages",
        "threshold_mean",
        "Largest distance accepted of the mean of a channel from 0.",
        "10 images with pixels of 0 and 0.5",
        saved({"Net_input_0": np.tile([0.0, 0.5], 10 * 3 * 8).reshape(10, 3, 4, 4)}),
        met=["0.24"],
        clear=["0.25"],
        others={"threshold_samples": "10"},
    ),
    Case(
        "CheckInputImages",
        "threshold_samples",
        "Number of images to see before judging.",
        "10 images with pixels of 9",
        saved({"Net_input_0": images(9.0)}),
        met=["10"],
        clear=["11"],
    ),
    Case(
        "CheckInputImages",
        "regex",
        PATTERNS,
        "10 images with pixels of 9 (bad) and of 0 (good)",
        saved({"bad": images(9.0), "good": images(0.0)}),
        met=["bad"],
        clear=["good"],
        others={"threshold_samples": "10"},
    ),
    Case(
        "CheckInputImages",
        "channel",
        "Axis of the colour channel.",
        "10 images of shape (10, 3, 2, 3) with the last axis 9, -9 and 0",
        saved({"Net_input_0": np.tile([9.0, -9.0, 0.0], 60).reshape(10, 3, 2, 3)}),
        met=["3"],
        clear=["1"],
        others={"threshold_samples": "10"},
    ),
    Case(
        "NLPSequenceRatio",
        "tensor_regex",
        PATTERNS,
        "one step with all tokens 0 (bad) and none (good)",
        saved({"bad": np.zeros((2, 5), int), "good": np.ones((2, 5), int)}),
        met=["bad"],
        clear=["good"],
    ),
    Case(
        "NLPSequenceRatio",
        "token_values",
        "The tokens to count.",
        "one step with three fifths of token 7",
        saved({"embedding0_input_0": np.array([[7, 7, 7, 1, 2]])}),
        met=["7"],
        clear=["8"],
        others={"token_thresholds_percent": "50"},
    ),
    Case(
        "NLPSequenceRatio",
        "token_thresholds_percent",
        "Largest percentage accepted of each of these tokens.",
        "one step with three fifths of token 0",
        saved({"embedding0_input_0": np.array([[0, 0, 0, 1, 2]])}),
        met=["59", "50"],
        clear=["60"],
    ),
    Case(
        "Confusion",
        "category_no",
        "Number of classes.",
        "one step with three classes, of which one is taken for another",
        saved(labelled([0, 1, 2], [0, 1, 1])),
        met=["3"],
        clear=["2"],
        others={"min_diag": "0.9"},
    ),
    *(
        Case(
            "Confusion",
            f"{kind}{suffix}",
            f"{what} of the {kind}.",
            f"100 {kind} that are right (good) or wrong (bad) beside those of the other kind",
            saved(
                {
                    other: np.array(BALANCED),
                    "good": np.array(BALANCED),
                    "bad": np.array(BALANCED[::-1]),
                },
                collections={"good": "^good", "bad": "^bad", other: f"^{other}"},
            ),
            met=["bad"],
            clear=["good"],
            others={"min_diag": "0.9"} | ({kind: "none"} if suffix else {}),
        )
        for kind, other in (("labels", "predictions"), ("predictions", "labels"))
        for suffix, what in (("", "Tensor or collection"), ("_collection", "Collection"))
    ),
    Case(
        "Confusion",
        "min_diag",
        "Smallest share accepted of correct predictions of a class.",
        "one step; of ten predictions of one class, eight are correct",
        saved(labelled([0] * 10 + [0] * 2 + [1] * 8, [0] * 10 + [1] * 10)),
        met=["0.81"],
        clear=["0.8"],
        others={"max_off_diag": "1"},
    ),
    Case(
        "Confusion",
        "max_off_diag",
        "Largest share accepted of another class among the predictions of a class.",
        "one step; of ten predictions of one class, two are of another",
        saved(labelled([0] * 10 + [0] * 2 + [1] * 8, [0] * 10 + [1] * 10)),
        met=["0.19"],
        clear=["0.2"],
        others={"min_diag": "0"},
    ),
    Case(
        "FeatureImportanceOverweight",
        "threshold",
        "Largest share accepted of the most important features.",
        "the first round with importances of 0.5, 0.25, 0.125 and 0.125",
        saved(importances("weight", 0.5, 0.25, 0.125, 0.125)),
        met=["0.87"],
        clear=["0.875"],
    ),
    Case(
        "FeatureImportanceOverweight",
        "nfeatures",
        "How many of the most important features are added up.",
        "the first round with importances of 0.5, 0.25, 0.125 and 0.125",
        saved(importances("weight", 0.5, 0.25, 0.125, 0.125)),
        met=["3"],
        clear=["2"],
    ),
    Case(
        "FeatureImportanceOverweight",
        "tensor_regex",
        PATTERNS,
        "the first round with importances of 0.97, 0.01, 0.01 and 0.01 (gain), and of 0.25 (cover)",
        saved(importances("gain", 0.97, 0.01, 0.01, 0.01) | importances("cover", *[0.25] * 4)),
        met=["gain"],
        clear=["cover"],
        others={"threshold": "0.8"},
    ),
    Case(
        "TreeDepth",
        "depth",
        "Trees that are deeper are reported.",
        "one round with a full tree of 31 nodes, four levels below the root",
        saved({"trees/Node": np.arange(31)}),
        met=["3"],
        clear=["4"],
    ),
)


_NOT_DECREASING: Final = (
    *(
        Case(
            "LossNotDecreasing",
            name,
            sentence,
            "three steps with losses of 1, 1, 1 (bad) and 1, 0.5, 0.25 (good)",
            saved(
                *beside(series("bad", 1, 1, 1), series("good", 1, 0.5, 0.25)),
                collections=GOOD_AND_BAD,
            ),
            met=["bad"],
            clear=["good"],
            others={"num_steps": "1"},
        )
        for name, sentence in (("collection_names", COLLECTIONS), ("tensor_regex", PATTERNS))
    ),
    Case(
        "LossNotDecreasing",
        "use_losses_collection",
        "Whether the collection losses is examined too.",
        "three steps with losses of 1, 1, 1 in the collection, and of 1, 0.5, 0.25 (good)",
        saved(*beside(series("loss", 1, 1, 1), series("good", 1, 0.5, 0.25))),
        met=["True"],
        clear=["False"],
        others={"tensor_regex": "good", "num_steps": "1"},
    ),
    Case(
        "LossNotDecreasing",
        "num_steps",
        "The smallest distance of the two steps that are compared.",
        "a loss of 1 at the steps 0 and 4",
        saved(*series("loss", 1, 1), steps=[0, 4]),
        met=["4"],
        clear=["5"],
    ),
    Case(
        "LossNotDecreasing",
        "diff_percent",
        "The percentage by which the loss must fall.",
        "a loss of 100, then 90",
        saved(*series("loss", 100, 90)),
        met=["10.1"],
        clear=["10"],
        others={"num_steps": "1"},
    ),
    Case(
        "LossNotDecreasing",
        "increase_threshold_percent",
        "The percentage by which a rising loss may rise.",
        "a loss of 100, then 110",
        saved(*series("loss", 100, 110)),
        met=["9.9"],
        clear=["10"],
        others={"num_steps": "1"},
    ),
    Case(
        "LossNotDecreasing",
        "mode",
        "The mode whose losses are examined.",
        "losses of 1, 1, 1 in training and of 1, 0.5, 0.25 in evaluation",
        saved(*series("loss", 1, 1, 1, 0.5, 1, 0.25), modes="TETETE"),
        met=["TRAIN"],
        clear=["EVAL"],
        others={"num_steps": "1"},
    ),
)
_OVERFIT: Final = (
    Case(
        "Overfit",
        "tensor_regex",
        PATTERNS,
        "two epochs; evaluation is twice the training loss of 1 (bad) or equals it (good)",
        saved(*beside(series("bad", 1, 2, 1, 2, 1), series("good", 1, 1, 1, 1, 1)), modes="TETET"),
        met=["bad"],
        clear=["good"],
        others={"ratio_threshold": "0.5"},
    ),
    Case(
        "Overfit",
        "start_step",
        "The first step whose losses are compared.",
        "evaluation is twice the training loss of 1 in the first epoch and equals it later",
        saved(*series("loss", 1, 2, 1, 1, 1), modes="TETET"),
        met=["0"],
        clear=["2"],
        others={"patience": "1"},
    ),
    Case(
        "Overfit",
        "patience",
        "How often the ratio may exceed the threshold.",
        "two epochs; evaluation is twice the training loss of 1",
        saved(*series("loss", 1, 2, 1, 2, 1), modes="TETET"),
        met=["2"],
        clear=["3"],
    ),
    Case(
        "Overfit",
        "ratio_threshold",
        "The largest relative gap accepted between validation and training loss.",
        "one epoch with losses of 1 and 1.5",
        saved(*series("loss", 1, 1.5, 1), modes="TET"),
        met=["0.49"],
        clear=["0.5"],
        others={"patience": "1"},
    ),
)
_OVERTRAINING: Final = (
    Case(
        "Overtraining",
        "patience_train",
        "The number of steps without a better training loss.",
        "four steps with a training loss of 1",
        saved(*series("loss", 1, 1, 1, 1), modes="TTTT"),
        met=["3"],
        clear=["4"],
    ),
    Case(
        "Overtraining",
        "patience_validation",
        "The number of steps without a better validation loss.",
        "four steps with a validation loss of 1, then two with a training loss of 1",
        saved(*series("loss", *[1] * 6), modes="EEEETT"),
        met=["3"],
        clear=["4"],
        others={"patience_train": "1"},
    ),
    Case(
        "Overtraining",
        "delta",
        "The smallest amount by which a better loss must be smaller.",
        "training losses of 1, 0.95, 0.9 and 0.85",
        saved(*series("loss", 1, 0.95, 0.9, 0.85), modes="TTTT"),
        met=["0.1"],
        clear=["0.04"],
        others={"patience_train": "2"},
    ),
)


def _stalled(root: Path) -> Path:
    return rawtrial.write(root / "run", files([{0: 0.0, 1: 60.0}]))


_STALLED: Final = (
    Case(
        "StalledTrainingRule",
        "threshold",
        "Seconds without any new tensor after which the job is stalled.",
        "two steps, 60 seconds apart",
        _stalled,
        met=["59"],
        clear=["60"],
    ),
    Case(
        "StalledTrainingRule",
        "stop_training_on_fire",
        "Whether to stop the job; this does not change the verdict.",
        "two steps, 60 seconds apart",
        _stalled,
        met=["True", "False"],
        others={"threshold": "59"},
    ),
    Case(
        "StalledTrainingRule",
        "training_job_name_prefix",
        "Which job to stop; this does not change the verdict.",
        "two steps, 60 seconds apart",
        _stalled,
        met=["mine", "yours"],
        others={"threshold": "59"},
    ),
)
TENSOR_CASES: Final = (
    *_GRADIENTS,
    *_WEIGHTS,
    *_UNITS,
    *_DATA,
    *_NOT_DECREASING,
    *_OVERFIT,
    *_OVERTRAINING,
    *_STALLED,
)
