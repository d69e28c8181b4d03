"""training_kind: what kind of training a trial holds, and whether it was resumed."""

import enum
import functools
import re
from itertools import pairwise
from typing import Any, Final

from smdebug.rules.extensions import step_in_segment


class TrainingKind(enum.StrEnum):
    """A kind of training, by what its losses and labels mean.

    Attributes
    ----------
    SUPERVISED
        A loss that is minimised, and none of the signs below.
    LANGUAGE_MODEL
        Labels are tokens: they are unbalanced by nature, and losses fall slowly.
    ADVERSARIAL
        Two models train against each other: no loss of theirs has to fall.
    REINFORCEMENT
        Losses of a policy or of temporal differences: they may rise, oscillate and be negative.
    BOOSTED_TREES
        A round of boosting at each step.
    UNKNOWN
        The trial has no loss so far.
    """

    SUPERVISED = "supervised"
    LANGUAGE_MODEL = "language model"
    ADVERSARIAL = "adversarial"
    REINFORCEMENT = "reinforcement"
    BOOSTED_TREES = "boosted trees"
    UNKNOWN = "unknown"


_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OTHER: Final = re.compile(r"[^a-z0-9]+")
# Words as `_words` returns them; a name has a sign if it contains the words in this order.
_GENERATOR: Final = re.compile(r" (generator|net g|g loss|loss g|gen loss|loss gen) ")
_DISCRIMINATOR: Final = re.compile(
    r" (discriminator|critic|net d|d loss|loss d|disc loss|loss disc|d real|d fake|real loss"
    r"|fake loss) "
)
# The hook saves model/idle_models where several models are not all called at each step.
_ADVERSARIAL: Final = re.compile(
    r" (gan|adversarial|wasserstein|gradient penalty|model idle models) "
)
_REINFORCEMENT: Final = re.compile(
    r" (policy( gradient)? loss|pg loss|actor( \d+)? loss|loss actor|loss policy|td error|td loss"
    r"|(qf?\d?|q value) loss|loss (pi|q)|ep ?(rew|len) ?mean"
    r"|(ep(isod(e|ic))?|avg|average|mean)( ep)? (rews?|ret(urn)?s?)"
    r"|rewards?(?! (chosen|rejected|margin|accurac|model|loss))"
    r"|approx ?kl|clip ?frac(tion)?|clip ratio|policy entropy|explained variance|rollout"
    r"|advantages?|value loss|ent coef|completions?( mean)? length) "
)
_LANGUAGE: Final = re.compile(
    r" (lm head|embed tokens|wte|word embeddings?|tok(en)? emb(ed(ding)?s?)?|perplexity|ppl"
    r"|bits per (byte|character)|bpb|bpc|num( input)? tokens( seen)?|(tokens|train) seen"
    r"|masked lm loss|lm loss|mlm loss) "
)
_TREES: Final = re.compile(
    r"^(feature_importance|full_shap|average_shap|trees|predictions|labels)(/|$)"
)
_TREE_METRIC: Final = re.compile(r"^(d?train|valid\w*|eval\w*|test|validation_\d+)-[-a-z@:.\d]+$")


def training_kind(trial: Any) -> TrainingKind:
    """Return the kind of training in a trial, by the names of the tensors saved so far."""
    kind = _kind_of(tuple(trial.tensor_names()))
    if kind is TrainingKind.UNKNOWN and trial.tensor_names(collection="losses"):
        return TrainingKind.SUPERVISED
    return kind


def is_resumed(trial: Any, step: int) -> bool:
    """Return whether the training at a global step went on from an earlier one.

    Its steps went back, but not to the start: its first step is further from 0 than any two of its
    steps are from each other. Logs to which several trainings were appended begin anew.
    """
    if step_in_segment(step) == step:
        return False
    steps = trial.steps()
    gaps = (later - earlier for earlier, later in pairwise(steps))
    return step_in_segment(steps[0]) > max(gaps, default=0)


@functools.lru_cache(maxsize=16)
def _kind_of(names: tuple[str, ...]) -> TrainingKind:
    """Return the kind that names are signs of, the most telling sign first."""
    if any(_TREES.match(name) for name in names) and _has_tree_metrics(names):
        return TrainingKind.BOOSTED_TREES
    words = [_words(name) for name in names]

    def has(sign: re.Pattern[str]) -> bool:
        return any(map(sign.search, words))

    if (has(_GENERATOR) and has(_DISCRIMINATOR)) or has(_ADVERSARIAL):
        return TrainingKind.ADVERSARIAL
    if has(_REINFORCEMENT):
        return TrainingKind.REINFORCEMENT
    if has(_LANGUAGE):
        return TrainingKind.LANGUAGE_MODEL
    return TrainingKind.BOOSTED_TREES if _has_tree_metrics(names) else TrainingKind.UNKNOWN


def _has_tree_metrics(names: tuple[str, ...]) -> bool:
    return any(map(_TREE_METRIC.match, names))


def _words(name: str) -> str:
    """Return the words of a name in lower case, with a space before, between and after them.

    >>> _words("netD.main/conv_1")
    ' net d main conv 1 '
    """
    return f" {_OTHER.sub(' ', _CAMEL.sub(' ', name).lower()).strip()} "
