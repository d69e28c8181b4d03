"""NameTable: the modes and collections of tensor names that other writers chose.

`ROWS` and `MODE_ROWS` are the whole table; docs/sources/names.md renders it.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from string import digits
from typing import Final, NamedTuple

from rule_core.exceptions import SMDebugValueError
from rule_core.model import patterns
from rule_core.model.parameter_names import parameter_collection
from rule_core.modes import ModeKeys
from rule_core.reading.source_record import TensorName
from rule_core.sources.options import DEFAULT, NameRule, SourceOptions

ANYWHERE: Final = "anywhere"
FIRST_OF_A_PART: Final = "first of a part"
LAST: Final = "last"

_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_OTHER: Final = re.compile(r"[^a-z0-9/]+")
_NUMBER: Final = re.compile(r"(?: [0-9]+)+(?= )")
_SLASH: Final = re.compile(r" ?/ +")


class CollectionRow(NamedTuple):
    """The collection of names that have one of some phrases among their words.

    Attributes
    ----------
    collection
        "" for none.
    where
        Where the phrase must be: `ANYWHERE` or `LAST`.
    phrases
        Words in lower case; a number may follow the last one.
    """

    collection: str
    where: str
    phrases: tuple[str, ...]


class ModeRow(NamedTuple):
    """The mode of names that have one of some words.

    Attributes
    ----------
    where
        `ANYWHERE`, `FIRST_OF_A_PART` (a part stands between slashes) or `LAST`. `LAST` is for
        losses and metrics only, since "val" is often short for "value".
    """

    mode: ModeKeys
    where: str
    phrases: tuple[str, ...]


def _phrases(text: str) -> tuple[str, ...]:
    return tuple(text.split(", "))


# The first row that matches decides.
ROWS: Final = (
    CollectionRow(
        "",
        LAST,
        _phrases(
            "weight, weights, coef, coeff, coefficient, factor, threshold, momentum, decay, "
            "beta, std, var, variance, count, counts, mask, time, seconds, runtime, elapsed, "
            "patience"
        ),
    ),
    CollectionRow(
        "",
        ANYWHERE,
        _phrases(
            "best, max grad norm, max gradient norm, clip grad norm, grad norm clip, "
            "gradient norm clip, step time, iter time, total flos, num tokens, grad scale growth"
        ),
    ),
    CollectionRow(
        "loss_scales", ANYWHERE, _phrases("loss scale, loss scaler, loss scaling, grad scale")
    ),
    CollectionRow(
        "gradient_norms",
        ANYWHERE,
        _phrases(
            "gnorm, grad norm, grad norms, gradnorm, gradient norm, gradient norms, grads norm, "
            "gradients norm, grad global norm, gradient global norm, grad total norm, "
            "grad l2 norm, gradient l2 norm, norm grad, norm gradient, norm gradients"
        ),
    ),
    CollectionRow("learning_rates", ANYWHERE, _phrases("lr, learning rate, learning rates")),
    CollectionRow(
        "throughputs",
        ANYWHERE,
        _phrases(
            "throughput, per second, per sec, per s, tokens s, samples s, it s, tps, tgs, fps, "
            "wps, ups, mfu, hfu, flops, tflops, tflop s"
        ),
    ),
    CollectionRow("metrics", ANYWHERE, _phrases("ppl, perplexity")),
    CollectionRow(
        "losses", ANYWHERE, _phrases("cross entropy, crossentropy, logloss, mlogloss, nll")
    ),
    CollectionRow(
        "",
        ANYWHERE,
        _phrases(
            "policy loss, policy gradient loss, pg loss, actor loss, surrogate loss, entropy loss, "
            "loss policy, loss actor, loss entropy"
        ),
    ),
    CollectionRow("losses", ANYWHERE, _phrases("loss, losses")),
    CollectionRow(
        "metrics",
        ANYWHERE,
        _phrases(
            "acc, accuracy, accuracies, top1, top5, f1, auc, auroc, auprc, aucpr, ap, map, "
            "precision, recall, fitness, iou, miou, dice, bleu, sacrebleu, rouge, rouge1, rouge2, "
            "rougel, rougelsum, meteor, chrf, wer, cer, bpb, bpc, exact match, "
            "mae, mse, rmse, mape, r2, error, errors, merror, mcc, matthews correlation, kappa, "
            "pearson, spearmanr, ndcg, mrr, psnr, ssim, fid, reward, rewards, rew mean, win rate"
        ),
    ),
)

# The first of these words in the name decides; a name without one has mode TRAIN.
MODE_ROWS: Final = (
    ModeRow(ModeKeys.TRAIN, ANYWHERE, _phrases("train, training")),
    ModeRow(
        ModeKeys.EVAL,
        ANYWHERE,
        _phrases(
            "eval, evaluation, validation, metrics map, metrics precision, metrics recall, "
            "metrics accuracy top"
        ),
    ),
    ModeRow(ModeKeys.EVAL, FIRST_OF_A_PART, _phrases("val, valid, test, dev")),
    ModeRow(ModeKeys.EVAL, LAST, _phrases("val, valid, test")),
)


class NameTable:
    """Returns the mode and collection of a tensor, by its name.

    Raises
    ------
    SMDebugValueError
        If a rule of the user is not valid.
    """

    def __init__(self, options: SourceOptions = DEFAULT) -> None:
        for rule in options.names:
            check_name_rule(rule)
        self._rules = options.names
        self._meanings: dict[str, TensorName] = {}

    def __call__(self, name: str) -> TensorName:
        """Return the mode and collection of a name.

        >>> NameTable()("eval_loss")
        TensorName(mode=<ModeKeys.EVAL: 2>, collection='losses')
        """
        meaning = self._meanings.get(name)
        if meaning is None:
            meaning = self._meanings[name] = self._meaning(name)
        return meaning

    def _meaning(self, name: str) -> TensorName:
        rule = self._rule(name)
        if rule is None:
            return _built_in(name)
        mode, collection = rule.mode, rule.collection
        if mode is None or collection is None:
            usual = _built_in(name)
            return TensorName(
                usual.mode if mode is None else ModeKeys[mode],
                usual.collection if collection is None else collection,
            )
        return TensorName(ModeKeys[mode], collection)

    def parameter(self, name: str) -> str:
        """Return the collection of a tensor in a checkpoint; "" for none."""
        rule = self._rule(name)
        if rule is None or rule.collection is None:
            return parameter_collection(name)
        return rule.collection

    def _rule(self, name: str) -> NameRule | None:
        return next(
            (rule for rule in self._rules if patterns.search(whole(rule.pattern), name)), None
        )


def check_name_rule(rule: NameRule) -> None:
    """Check the pattern and the mode of a rule.

    Raises
    ------
    SMDebugValueError
        If one is not valid.
    """
    try:
        for pattern in (rule.pattern, whole(rule.pattern)):
            patterns.search(pattern, "")
    except re.error as err:
        msg = f"Pattern {rule.pattern!r} is not a regular expression: {err}."
        raise SMDebugValueError(msg) from err
    if rule.mode is not None and rule.mode not in ModeKeys.__members__:
        modes = ", ".join(ModeKeys.__members__)
        msg = f"The mode of {rule.pattern!r} must be one of {modes}, got {rule.mode!r}."
        raise SMDebugValueError(msg)


def whole(pattern: str) -> str:
    """Return a pattern that matches whole names only; flags must stay at its start."""
    flags = re.match(r"\(\?[aiLmsux]+\)", pattern)
    start = flags.end() if flags else 0
    return rf"{pattern[:start]}\A(?:{pattern[start:]})\Z"


def words_of(name: str) -> str:
    """Return the words of a name in lower case, without numbers; each part begins with a slash.

    >>> words_of("metrics/mAP50-95(B)"), words_of("CrossEntropyLoss"), words_of("grad_2.0_norm")
    ('/metrics/map50 b', '/cross entropy loss', '/grad norm')
    """
    spaced = name if name.islower() else _CAMEL.sub(" ", name).lower()
    words = _OTHER.sub(" ", f"/{spaced.replace('/', ' / ')} ")
    return _SLASH.sub("/", _NUMBER.sub("", words)).rstrip()


def _pattern(where: str, phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of phrases in words; each part of a name begins with a slash."""
    before = "/" if where == FIRST_OF_A_PART else r"(?<![^/ ])"
    after = r"\Z" if where == LAST else r"(?![^/ ])"
    listed = "|".join(map(re.escape, phrases)).replace(r"\ ", "[ /]+")
    return re.compile(rf"{before}(?:{listed})[0-9]*{after}")


class _Phrases(NamedTuple):
    """Searches the words of a name for the phrases of a row."""

    search: Callable[[str], re.Match[str] | None]
    row: CollectionRow | ModeRow


def _by_first_word(rows: Sequence[CollectionRow | ModeRow]) -> dict[str, list[int]]:
    """Return the positions of the rows by the first words of their phrases, without numbers."""
    positions: dict[str, list[int]] = {}
    for position, row in enumerate(rows):
        for word in {phrase.split()[0].rstrip(digits) for phrase in row.phrases}:
            positions.setdefault(word, []).append(position)
    return positions


_ALL: Final[tuple[CollectionRow | ModeRow, ...]] = (*ROWS, *MODE_ROWS)
_BY_FIRST_WORD: Final = _by_first_word(_ALL)
_LAST_COUNTS: Final = frozenset({"losses", "metrics"})


@cache
def _compiled() -> list[_Phrases]:
    """Return what searches for each row; compiling takes longer than starting without it."""
    return [_Phrases(_pattern(row.where, row.phrases).search, row) for row in _ALL]


def _built_in(name: str) -> TensorName:
    compiled = _compiled()
    words = words_of(name)
    positions: set[int] = set()
    for word in words.replace("/", " ").split():
        positions.update(_BY_FIRST_WORD.get(word.rstrip(digits), ()))
    collection: str | None = None
    mode, first = ModeKeys.TRAIN, len(words)
    for position in sorted(positions):
        search, row = compiled[position]
        if isinstance(row, CollectionRow):
            if collection is None and search(words):
                collection = row.collection
            continue
        match = search(words)
        if match is None or match.start() >= first:
            continue
        if row.where != LAST or collection in _LAST_COUNTS:
            mode, first = row.mode, match.start()
    return TensorName(mode, collection or "")
