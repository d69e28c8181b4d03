"""Faulty trainings of XGBoost: trees too deep, leaks, wrong parameters, rounds without end."""

import functools
from pathlib import Path

import numpy as np
import training_runs

from runs_tuned.first_held_out.boosted import tables
from runs_tuned.first_held_out.boosted.tables import grow, halves

faulty = functools.partial(training_runs.faulty, kind="boosted_trees")

BY_HEART = {
    "Overfit": "what is learnt by heart does not hold for other rows",
    "Overtraining": "there is no more to learn",
    "UnchangedTensor": "losses stand still once all is learnt by heart",
    "Confusion": "what is learnt by heart does not hold for other rows",
    "ClassImbalance": "what is learnt by heart does not hold for other rows",
    "LossNotDecreasing": "there is no more to learn",
}
TOLD = {
    "Overtraining": "all is known after a few rounds",
    "UnchangedTensor": "all is known after a few rounds",
    "LossNotDecreasing": "all is known after a few rounds",
    "Overfit": "the last rounds learn noise",
}
UNLEARNT = {
    "Overtraining": "nothing gets better",
    "Confusion": "all is taken for one class",
    "ClassImbalance": "all is taken for one class",
    "FeatureImportanceOverweight": "no feature is used",
    "AllZero": "trees of a single leaf of zero",
}


@faulty(
    "XGBoost, numbers of claims, Poisson regression",
    "a depth of 14 was copied from a tutorial with a million rows",
    {"TreeDepth", "Overfit"},
    may=BY_HEART,
)
def claims_depth_14(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.claims()),
        30,
        objective="count:poisson",
        max_depth=14,
        eta=0.2,
        max_delta_step=0.7,
    )


@faulty(
    "XGBoost, four classes by forests of five trees a round",
    "parameters of scikit-learn's forest: depth 25, leaves of one row",
    {"TreeDepth"},
    may=BY_HEART,
)
def forest_of_another_library(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.classes(4, flip_y=0.1)),
        10,
        objective="multi:softprob",
        num_class=4,
        num_parallel_tree=5,
        max_depth=25,
        min_child_weight=0.1,
        subsample=0.8,
        colsample_bynode=0.4,
    )


@faulty(
    "XGBoost, house prices, squared errors, weak splits pruned",
    "the price of the sale with tax is a feature",
    {"FeatureImportanceOverweight"},
    may=TOLD,
)
def tax_leaked(root: Path) -> int:
    x, y = tables.houses()
    taxed = np.exp(y) * 1.19 + np.random.default_rng(2).normal(0, 0.2, len(y))
    return grow(
        root,
        *halves(np.column_stack([x, taxed]), y),
        40,
        objective="reg:squarederror",
        max_depth=4,
        eta=0.3,
        gamma=0.05,
        stop_early=3,
    )


@faulty(
    "XGBoost, results of queries, ranked in pairs",
    "the time that readers stayed, known after the click only, is a feature",
    {"FeatureImportanceOverweight"},
    may=TOLD,
)
def dwell_time_leaked(root: Path) -> int:
    x, y, query = tables.results_of_queries()
    stayed = 20.0 * y + np.random.default_rng(3).uniform(0, 19, len(y))
    return grow(
        root,
        *halves(np.column_stack([x, stayed]), y, qid=query),
        20,
        objective="rank:pairwise",
        eval_metric="ndcg@5",
        max_depth=3,
        eta=0.3,
        gamma=2.0,
    )


@faulty(
    "XGBoost, two classes",
    "gamma is in the unit of another objective: no split is worth it",
    {"LossNotDecreasing", "UnchangedTensor"},
    may=UNLEARNT,
)
def no_split_is_worth_it(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.classes(seed=41)),
        40,
        objective="binary:logistic",
        gamma=5000.0,
        max_depth=4,
        eta=0.2,
    )


@faulty(
    "XGBoost, Friedman's function",
    "a learning rate of 3 in place of 0.3: each round overshoots",
    {"LossNotDecreasing"},
    may={
        "Overfit": "both losses are out of hand, and differ",
        "ExplodingTensor": "predictions run over",
        "Overtraining": "nothing gets better",
    },
)
def decimal_point_lost(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.friedman()),
        30,
        objective="reg:squarederror",
        eta=3.0,
        max_depth=4,
    )


@faulty(
    "XGBoost, two classes a fifth of them labelled wrongly, depth 4",
    "200 rounds without early stopping",
    {"Overfit"},
    may=BY_HEART,
)
def chance_by_heart(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.classes(seed=42, n_samples=600, flip_y=0.4)),
        200,
        objective="binary:logistic",
        max_depth=4,
        eta=0.2,
        save_every=4,
    )


@faulty(
    "XGBoost, times of survival of 200 patients, half of them censored",
    "120 rounds for 200 patients: Cox's likelihood falls in training only",
    {"Overfit"},
    may=BY_HEART,
)
def few_patients(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.lifetimes(200)),
        120,
        objective="survival:cox",
        max_depth=3,
        eta=0.1,
        save_every=2,
    )
