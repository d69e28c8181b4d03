"""Repeated trainings that are not what they were the first time."""

from pathlib import Path

from training_runs import faulty

from runs_tuned.fifth_held_out.data_and_trees.healthy_tables import crosses_of_houses
from runs_tuned.fifth_held_out.data_and_trees.healthy_texts import mean_of_mails
from runs_tuned.fifth_held_out.data_and_trees.healthy_trees import shares_of_rooms

RESUMED = {
    "GradientNormSpike": "the first steps without moments are of another size",
    "LossSpike": "the first steps without moments are of another size",
    "WeightUpdateRatio": "the first steps without moments are of another size",
}


@faulty(
    "mails of four desks by the mean of their words, once more by the same seed",
    "after the code was tidied up the mean is over all places, padding among them",
    {"SimilarAcrossRuns"},
    other="mails_by_their_mean",
)
def padding_in_the_mean(root: Path) -> int:
    return mean_of_mails(root, padding_counts=True)


@faulty(
    "XGBoost, shares of rooms that are let, once more by the same seed",
    "an older version of the library begins with 0.5 in place of the mean of the targets",
    {"SimilarAcrossRuns"},
    other="trees_of_rooms",
    kind="boosted_trees",
)
def base_of_an_older_version(root: Path) -> None:
    shares_of_rooms(root, base_score=0.5)


@faulty(
    "prices of houses by products of features, once more, interrupted and resumed at step 80",
    "the checkpoint has the weights but not the moments of Adam",
    {"SimilarAcrossRuns"},
    may=RESUMED,
    other="houses_by_crosses",
)
def moments_not_in_the_checkpoint(root: Path) -> int:
    return crosses_of_houses(root, forgets_at=80)
