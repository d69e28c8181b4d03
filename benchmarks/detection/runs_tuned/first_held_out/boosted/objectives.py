"""Healthy trainings of XGBoost with the objectives and boosters that fewer people use."""

import functools
from pathlib import Path

import training_runs

from runs_tuned.first_held_out.boosted import tables
from runs_tuned.first_held_out.boosted.tables import grow, halves

healthy = functools.partial(training_runs.healthy, kind="boosted_trees")


@healthy("XGBoost, numbers of claims, Poisson regression, stopped early")
def boosted_counts(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.claims()),
        80,
        objective="count:poisson",
        max_depth=3,
        eta=0.1,
        stop_early=5,
    )


@healthy("XGBoost, results of queries, ranked by LambdaMART: a metric that rises")
def boosted_ranking(root: Path) -> int:
    x, y, query = tables.results_of_queries()
    return grow(
        root,
        *halves(x, y, qid=query),
        40,
        objective="rank:ndcg",
        eval_metric="ndcg@5",
        max_depth=4,
        eta=0.1,
        stop_early=10,
    )


@healthy("XGBoost, house prices, the ninth decile by quantile regression")
def boosted_quantile(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.houses()),
        60,
        objective="reg:quantileerror",
        quantile_alpha=0.9,
        max_depth=3,
        eta=0.15,
        save_every=2,
        stop_early=6,
    )


@healthy("XGBoost, two classes by hinge loss: an error that goes in steps")
def boosted_hinge(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.classes()),
        40,
        objective="binary:hinge",
        max_depth=3,
        eta=0.3,
        stop_early=9,
    )


@healthy("XGBoost, times of survival, half of them censored, Cox regression")
def boosted_survival(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.lifetimes()),
        60,
        objective="survival:cox",
        max_depth=2,
        eta=0.1,
        subsample=0.8,
        stop_early=5,
    )


@healthy("XGBoost, two classes by DART: trees are dropped, the loss is uneven")
def boosted_dart(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.classes(seed=31)),
        45,
        objective="binary:logistic",
        booster="dart",
        rate_drop=0.15,
        skip_drop=0.3,
        max_depth=3,
        eta=0.2,
    )


@healthy("XGBoost, Friedman's function by forests of six trees a round")
def boosted_forests(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.friedman()),
        15,
        objective="reg:squarederror",
        num_parallel_tree=6,
        subsample=0.7,
        colsample_bynode=0.5,
        max_depth=5,
        eta=0.4,
    )


@healthy("XGBoost, house prices, monotone in size and age, L1 penalty")
def boosted_monotone(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.houses(seed=33)),
        60,
        objective="reg:absoluteerror",
        monotone_constraints="(1,-1,-1,0,0,0,0,0,0,0,0,0)",
        max_depth=4,
        eta=0.15,
        reg_alpha=0.5,
        stop_early=5,
    )


@healthy("XGBoost, linear booster with coordinate descent: coefficients, no trees")
def boosted_linear(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.lifetimes(seed=34)),
        40,
        objective="survival:cox",
        booster="gblinear",
        updater="coord_descent",
        eta=0.05,
        reg_lambda=0.01,
    )


@healthy("XGBoost, one of seven positive, area under the curve and log loss, stopped early")
def boosted_area(root: Path) -> int:
    return grow(
        root,
        *halves(*tables.classes(weights=[0.86], n_samples=1400, class_sep=1.3)),
        60,
        objective="binary:logistic",
        eval_metric=["auc", "logloss"],
        max_depth=3,
        eta=0.15,
        stop_early=6,
    )
