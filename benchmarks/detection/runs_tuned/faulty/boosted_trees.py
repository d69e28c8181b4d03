"""Trainings of XGBoost with trees that are too deep, features that tell the label, bad labels."""

import functools
from pathlib import Path

import numpy as np
import training_runs
from training.boosting import boost, table

faulty = functools.partial(training_runs.faulty, kind="boosted_trees")

DEEP = {
    "Overfit": "deep trees learn by heart",
    "Overtraining": "deep trees have learnt all there is within a few rounds",
    "LossNotDecreasing": "the validation loss does not fall any more",
    "UnchangedTensor": "once all is learnt by heart the losses stand still",
    "Confusion": "what was learnt by heart does not hold for other data",
    "ClassImbalance": "what was learnt by heart does not hold for other data",
}
LEAKED = {
    "Overtraining": "all is known after a few rounds",
    "LossNotDecreasing": "all is known after a few rounds",
    "UnchangedTensor": "all is known after a few rounds",
    "Overfit": "what was leaked is not there when it is used",
    "Confusion": "what was leaked is not there when it is used",
    "ClassImbalance": "what was leaked is not there when it is used",
    "AllZero": "a loss of nothing",
}
RNG = np.random.default_rng


@faulty("XGBoost, diabetes, regression", "trees of depth 12", {"TreeDepth", "Overfit"}, may=DEEP)
def depth_12(root: Path) -> int:
    return boost(root, *table("diabetes"), objective="reg:squarederror", max_depth=12)


@faulty(
    "XGBoost, digits, two classes",
    "no limit to the depth, leaves of a single row",
    {"TreeDepth"},
    may=DEEP,
)
def no_limit(root: Path) -> int:
    x, y = table("digits")
    return boost(
        root,
        x,
        y % 2,
        max_depth=0,
        grow_policy="lossguide",
        tree_method="hist",
        min_child_weight=0,
        rounds=20,
    )


@faulty(
    "XGBoost, breast cancer with a tenth of its labels wrong",
    "trees of depth 20 follow wrong labels",
    {"TreeDepth", "Overfit"},
    may=DEEP,
)
def depth_of_wrong_labels(root: Path) -> int:
    x, y = table("breast_cancer")
    wrong = RNG(0).random(len(y)) < 0.15
    return boost(root, x, np.where(wrong, 1 - y, y), max_depth=20, min_child_weight=0)


@faulty("XGBoost, digits in ten classes", "trees of depth 10, no pruning", {"TreeDepth"}, may=DEEP)
def depth_10(root: Path) -> int:
    return boost(
        root,
        *table("digits"),
        objective="multi:softmax",
        max_depth=10,
        min_child_weight=0,
        rounds=12,
    )


@faulty(
    "XGBoost, diabetes, a fast learning rate",
    "depth 16 and a learning rate of 1: all is learnt by heart at once",
    {"TreeDepth", "Overfit", "Overtraining"},
    may=DEEP,
)
def by_heart_at_once(root: Path) -> int:
    return boost(root, *table("diabetes"), objective="reg:squarederror", max_depth=16, eta=1.0)


@faulty(
    "XGBoost, diabetes, shallow trees, 300 rounds",
    "ten times as many rounds as help: training goes on to fall, validation rises",
    {"Overfit"},
    may=DEEP,
)
def too_many_rounds(root: Path) -> int:
    return boost(
        root,
        *table("diabetes"),
        objective="reg:squarederror",
        max_depth=4,
        eta=0.5,
        rounds=120,
        save_every=4,
    )


@faulty(
    "XGBoost, breast cancer",
    "the label is among the features, as a code",
    {"FeatureImportanceOverweight"},
    may=LEAKED,
)
def label_leaked(root: Path) -> int:
    x, y = table("breast_cancer")
    return boost(root, np.column_stack([x, 7.0 * y]), y, max_depth=3, rounds=20)


@faulty(
    "XGBoost, diabetes, regression",
    "a feature was made from the target",
    {"FeatureImportanceOverweight"},
    may=LEAKED,
)
def target_leaked(root: Path) -> int:
    x, y = table("diabetes")
    return boost(
        root,
        np.column_stack([x, y + RNG(0).normal(0, 0.5, len(y))]),
        y,
        objective="reg:squarederror",
        max_depth=4,
        rounds=20,
    )


@faulty(
    "XGBoost, wine",
    "rows are numbered in the order of their classes, and the number is a feature",
    {"FeatureImportanceOverweight"},
    may=LEAKED,
)
def row_number_leaked(root: Path) -> int:
    x, y = table("wine")
    return boost(
        root,
        np.column_stack([x, np.arange(len(y))]),
        y,
        objective="multi:softmax",
        max_depth=3,
        rounds=15,
    )


@faulty(
    "XGBoost, breast cancer; a result of the examination was joined",
    "a feature is known only after the diagnosis, and tells 97 % of it",
    {"FeatureImportanceOverweight"},
    may=LEAKED,
)
def known_afterwards(root: Path) -> int:
    x, y = table("breast_cancer")
    told = np.where(RNG(0).random(len(y)) < 0.999, y, 1 - y) + RNG(1).normal(0, 0.01, len(y))
    return boost(root, np.column_stack([x, told]), y, max_depth=2, rounds=10, gamma=1.0)


@faulty(
    "XGBoost, digits; all but two columns are empty by a failed join",
    "62 of 64 features are constant",
    {"FeatureImportanceOverweight"},
    may=LEAKED | {"Confusion": "two pixels tell little"},
)
def columns_empty(root: Path) -> int:
    x, y = table("digits")
    kept = np.zeros_like(x)
    kept[:, [28, 43]] = x[:, [28, 43]]
    return boost(root, kept, y % 2, max_depth=3, rounds=25)


@faulty(
    "XGBoost, digits in ten classes",
    "the labels 4 and 9 were merged by chance in half of the rows",
    {"Confusion"},
    may=DEEP,
)
def labels_merged(root: Path) -> int:
    x, y = table("digits")
    mixed = (RNG(0).random(len(y)) < 0.5) & ((y == 4) | (y == 9))
    return boost(
        root, x, np.where(mixed, 13 - y, y), objective="multi:softmax", max_depth=3, rounds=20
    )


@faulty(
    "XGBoost, breast cancer, one class a hundred times as frequent",
    "positives were filtered away, and trees learn to say no",
    {"ClassImbalance"},
    may=DEEP | LEAKED,
)
def positives_filtered(root: Path) -> int:
    x, y = table("breast_cancer")
    rows = (y == 1) | (np.cumsum(y == 0) % 30 == 0)
    return boost(root, x[rows], y[rows], max_depth=3, rounds=20)


@faulty(
    "XGBoost, breast cancer",
    "a learning rate of 1e-5: nothing is learnt",
    {"LossNotDecreasing"},
    may={
        "Overtraining": "nothing gets better",
        "Confusion": "all is taken for one class",
        "ClassImbalance": "all is taken for one class",
        "FeatureImportanceOverweight": "hardly any feature is used",
        "UnchangedTensor": "losses that hardly move",
    },
)
def boosted_too_slowly(root: Path) -> int:
    return boost(root, *table("breast_cancer"), max_depth=3, eta=1e-5)
