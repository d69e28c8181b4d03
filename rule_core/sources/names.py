"""NameTable: the modes and collections of tensor names that other writers chose.

`ROWS` and `MODE_ROWS` are the whole table; docs/sources/README.md shows it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from string import digits
from typing import Final, NamedTuple

from rule_core.exceptions import SMDebugValueError
from rule_core.model import patterns
from rule_core.model.parameter_names import parameter_collection
from rule_core.modes import ModeKeys
from rule_core.reading.source_record import (
    LOSSES_AND_METRICS,
    SourceRecord,
    TensorName,
    quoted,
)
from rule_core.sources.options import DEFAULT, NameRule, SourceOptions
from rule_core.sources.text.compressed_file import plain_name

ANYWHERE: Final = "anywhere"
FIRST_OF_A_PART: Final = "first of a part"
LAST: Final = "last"

VALUE: Final = "value"  # the name of a series whose file says what it is
MAX_MEANINGS: Final = 10_000  # kept; a hostile file may have a name in each line

_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
# What precedes a loss, or the set before a metric, in one word: iterloss, valacc.
_JOINED: Final = re.compile(
    r"[a-z](?=loss(?:es)?[0-9]*(?![a-z]))|"
    r"(?<![a-z])(?:train|training|tr|val|valid|validation|v|test|dev|eval)"
    r"(?=(?:acc|accuracy|err|error|auc|f1|mae|mse|rmse|ppl|perplexity|cost|dice|m?iou)[0-9]*(?![a-z]))"
)
# Words before the set, which is then still the first word of its part.
_STATISTICS: Final = r"(?:(?:avg|average|mean|epoch|total|running|final)[ /]+(?=[^ ]+ ))*"
_OTHER: Final = re.compile(r"[^\w/]+|_")
_NUMBER: Final = re.compile(r"(?: [0-9]+)+(?= )")
_SLASH: Final = re.compile(r" ?/ +")


class PhraseRow(NamedTuple):
    """The meaning of names that have one of some phrases among their words.

    Attributes
    ----------
    meaning
        A mode, or a collection ("" for none).
    where
        Where the phrase must be: `ANYWHERE`, `FIRST_OF_A_PART` (a part stands between slashes) or
        `LAST`. A mode that is `LAST` is for losses and metrics only, since "val" is often short for
        "value".
    phrases
        Words in lower case, separated by ``", "``; a number may follow the last one.
    """

    meaning: str | ModeKeys
    where: str
    phrases: str


_TAG: Final = re.compile(r"run[-_](.+?)[-_]tag[-_](.+)")  # of a chart of TensorBoard
_NUMBERED_SET: Final = re.compile(r"(validation_[0-9]+)[/:._-]")

# The first row that matches decides.
ROWS: Final = (
    PhraseRow(
        "",
        LAST,
        "weight, weights, coef, coeff, coefficient, factor, threshold, momentum, decay, "
        "beta, std, var, variance, count, counts, mask, time, seconds, runtime, elapsed, "
        "patience",
    ),
    PhraseRow(
        "",
        ANYWHERE,
        "best, max grad norm, max gradient norm, clip grad norm, grad norm clip, "
        "gradient norm clip, step time, iter time, total flos, num tokens, grad scale growth, "
        "packet loss",
    ),
    PhraseRow("loss_scales", ANYWHERE, "loss scale, loss scaler, loss scaling, grad scale"),
    PhraseRow(
        "gradient_norms",
        ANYWHERE,
        "gnorm, grad norm, grad norms, gradnorm, gradient norm, gradient norms, grads norm, "
        "gradients norm, grad global norm, gradient global norm, grad total norm, "
        "grad l2 norm, gradient l2 norm, norm grad, norm gradient, norm gradients",
    ),
    PhraseRow("learning_rates", ANYWHERE, "lr, learning rate, learning rates"),
    PhraseRow(
        "throughputs",
        ANYWHERE,
        "throughput, per second, per sec, per s, tokens s, samples s, it s, tps, tgs, fps, "
        "wps, ups, mfu, hfu, flops, tflops, tflop s",
    ),
    # The objectives of Kaldi are the logarithms of probabilities.
    PhraseRow("metrics", ANYWHERE, "ppl, perplexity, train objective, valid objective"),
    PhraseRow("losses", ANYWHERE, "cross entropy, crossentropy, logloss, mlogloss, nll"),
    PhraseRow(
        "",
        ANYWHERE,
        "policy loss, policy gradient loss, pg loss, actor loss, surrogate loss, entropy loss, "
        "loss policy, loss actor, loss entropy",
    ),
    PhraseRow(
        "losses",
        ANYWHERE,
        "loss, losses, deviance, perte, pertes, verlust, lernverlust, prüfverlust, pérdida, "
        "perdida, perda, perdua, pèrdua, потери, cost, objective, "
        "损失, 训练损失, 验证损失, 测试损失, 損失",
    ),
    PhraseRow(
        "metrics",
        ANYWHERE,
        "acc, accuracy, accuracies, top1, top5, f1, auc, auroc, auprc, aucpr, ap, map, "
        "precision, recall, fitness, iou, miou, dice, jaccard, sensitivity, specificity, "
        "bleu, sacrebleu, rouge, rouge1, rouge2, rougel, rougelsum, meteor, "
        "chrf, wer, cer, bpb, bpc, exact match, mae, mse, rmse, mape, r2, error, errors, "
        "merror, mcc, matthews correlation, kappa, "
        "pearson, spearmanr, ndcg, mrr, psnr, ssim, fid, reward, rewards, rew mean, "
        "mean return, average return, avg return, episode return, eval return, test return, "
        "train return, episodic return, returns, score, scores, elbo, win rate",
    ),
    PhraseRow("losses", LAST, "tl, vl"),
)

# The first of these words in the name decides; a name without one has mode TRAIN.
MODE_ROWS: Final = (
    PhraseRow(ModeKeys.TRAIN, ANYWHERE, "train, training, learn, trn, tr, 训练损失"),
    PhraseRow(
        ModeKeys.EVAL,
        ANYWHERE,
        "eval, evaluation, validation, holdout, prüfverlust, 验证损失, 测试损失, metrics map, "
        "metrics precision, metrics recall, metrics accuracy top",
    ),
    PhraseRow(
        ModeKeys.EVAL,
        FIRST_OF_A_PART,
        "val, vali, valid, vld, va, test, dev, cv, vl, v acc, v accuracy, v f1, v auc",
    ),
    PhraseRow(ModeKeys.EVAL, LAST, "val, valid, test"),
)


class NameTable:
    """Returns the name, mode and collection of a tensor, by the written name of its series.

    Rules of the user are about written names; the built-in table is about those of the tensors.

    Raises
    ------
    SMDebugValueError
        If an option of the user is not valid.
    """

    def __init__(self, options: SourceOptions = DEFAULT) -> None:
        for rule in options.names:
            check_name_rule(rule)
        self._rules = options.names
        words = _left_by_right(options.modes, "MODE=GLOB, such as eval=val_*")
        self._modes = {glob: _mode(word, glob) for glob, word in words.items()}
        self._ours = _left_by_right(options.map, "OURS=THEIRS, such as loss=my_loss")
        self._step_column = options.step_column
        self._meanings: dict[str, TensorName] = {}

    def __call__(self, name: str) -> TensorName:
        """Return what a written name says.

        >>> NameTable()("eval_loss")[:2]
        (<ModeKeys.EVAL: 2>, 'losses')
        """
        meaning = self._meanings.get(name)
        if meaning is None:
            if len(self._meanings) >= MAX_MEANINGS:
                self._meanings.clear()
            meaning = self._meanings[name] = self._meaning(name)
        return meaning

    def _meaning(self, name: str) -> TensorName:
        ours = self._ours.get(name, "")
        meaning = _built_in(ours or name)._replace(name=ours)
        rule = self._rule(name)
        if rule is not None and rule.collection is not None:
            meaning = meaning._replace(collection=rule.collection, collection_by="Names")
        if rule is not None and rule.mode is not None:
            meaning = meaning._replace(mode=ModeKeys[rule.mode], mode_by="Names")
        mode = next((mode for glob, mode in self._modes.items() if fnmatchcase(name, glob)), None)
        return meaning if mode is None else meaning._replace(mode=mode, mode_by="--mode")

    def parameter(self, name: str) -> str:
        """Return the collection of a tensor in a checkpoint; "" for none."""
        rule = self._rule(name)
        if rule is None or rule.collection is None:
            return parameter_collection(name)
        return rule.collection

    def unused(self, records: Sequence[SourceRecord]) -> Iterator[str]:
        """Yield a sentence for each option that names a column or series that no source has."""
        series = {name for record in records for name in record.columns}
        for theirs in sorted(self._ours.keys() - series):
            yield f"No file has a series {theirs!r} to map.{_existing(theirs, series)}"
        column, counters = self._step_column, {record.steps_from for record in records}
        if column and column not in counters:
            existing = _existing(column, series | counters - {""})
            yield f"No file counts its steps by a column {column!r}.{existing}"

    def _rule(self, name: str) -> NameRule | None:
        return next(
            (rule for rule in self._rules if patterns.search(whole(rule.pattern), name)), None
        )


def _left_by_right(options: Iterable[str], form: str) -> dict[str, str]:
    """Return the left sides of options ``LEFT=RIGHT`` by the right ones, which occur once."""
    sides: dict[str, str] = {}
    for option in options:
        value, _, key = option.partition("=")
        if not (value and key):
            raise SMDebugValueError(f"{option!r} must have the form {form}.")
        if sides.setdefault(key, value) != value:
            raise SMDebugValueError(
                f"{key!r} is given both {sides[key]!r} and {value!r}. Choose one."
            )
    return sides


def _mode(word: str, glob: str) -> ModeKeys:
    modes = {mode.name.lower(): mode for mode in ModeKeys}
    if word.lower() in modes:
        return modes[word.lower()]
    near = get_close_matches(word.lower(), modes, n=1)
    hint = f" Did you mean '{near[0]}={glob}'?" if near else ""
    raise SMDebugValueError(
        f"The mode of series {glob!r} must be one of {', '.join(modes)}, got {word!r}.{hint}"
    )


def _existing(name: str, names: AbstractSet[str]) -> str:
    """Return sentences on the names that exist; "" if there are none."""
    near = get_close_matches(name, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"{hint} There are {quoted(sorted(names))}." if names else ""


def with_training_set(names: Iterable[str]) -> dict[str, str]:
    """Return names that say the training set, by the names of XGBoost that do not.

    If all sets are called ``validation_N``, and there are several, the first is the training set.

    >>> with_training_set(["validation_0/logloss", "validation_1/logloss"])
    {'validation_0/logloss': 'train/validation_0/logloss'}
    """
    matches = {name: _NUMBERED_SET.match(name) for name in names}
    if not all(matches.values()) or len({match[1] for match in matches.values() if match}) == 1:
        return {}
    return {name: f"train/{name}" for name in matches if name.startswith("validation_0")}


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
        raise SMDebugValueError(
            f"Pattern {rule.pattern!r} is not a regular expression: {err}."
        ) from err
    if rule.mode is not None and rule.mode not in ModeKeys.__members__:
        modes = ", ".join(ModeKeys.__members__)
        raise SMDebugValueError(
            f"The mode of {rule.pattern!r} must be one of {modes}, got {rule.mode!r}."
        )


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
    spaced = _JOINED.sub(r"\g<0> ", spaced)
    words = _OTHER.sub(" ", f"/{spaced.replace('/', ' / ')} ")
    return _SLASH.sub("/", _NUMBER.sub("", words)).rstrip()


def _pattern(row: PhraseRow) -> re.Pattern[str]:
    """Return the pattern of a row's phrases in words; each part of a name begins with a slash."""
    before = f"/{_STATISTICS}" if row.where == FIRST_OF_A_PART else r"(?<![^/ ])"
    after = r"\Z" if row.where == LAST else r"(?![^/ ])"
    phrases = row.phrases.replace(" ", "[ /]+").replace(",[ /]+", "|")
    return re.compile(rf"{before}(?:{phrases})[0-9]*{after}")


def _by_first_word(rows: Sequence[PhraseRow]) -> dict[str, list[int]]:
    """Return the positions of the rows by the first words of their phrases, without numbers."""
    positions: dict[str, list[int]] = {}
    for position, row in enumerate(rows):
        for word in {phrase.split()[0].rstrip(digits) for phrase in row.phrases.split(", ")}:
            positions.setdefault(word, []).append(position)
    return positions


_ALL: Final = (*ROWS, *MODE_ROWS)
_BY_FIRST_WORD: Final = _by_first_word(_ALL)


@cache
def _compiled() -> list[re.Pattern[str]]:
    """Return the pattern of each row; compiling takes longer than starting without it."""
    return [*map(_pattern, _ALL)]


def _built_in(name: str) -> TensorName:
    compiled = _compiled()
    words = words_of(name)
    positions: set[int] = set()
    for word in words.replace("/", " ").split():
        positions.update(_BY_FIRST_WORD.get(word.rstrip(digits), ()))
    collection: str | None = None
    mode, first = ModeKeys.TRAIN, len(words)
    for position in sorted(positions):
        meaning, where, _ = _ALL[position]
        match = compiled[position].search(words)
        if match is None:
            continue
        if isinstance(meaning, str):
            collection = meaning if collection is None else collection
        elif match.start() < first and (where != LAST or collection in LOSSES_AND_METRICS):
            mode, first = meaning, match.start()
    return TensorName(mode, collection or "", says_mode=first < len(words))


NAMES: Final = NameTable()  # without options of a user


def title_of(key: str) -> str:
    """Return what the name of a file calls its metric; the folder too if the name is a set.

    >>> title_of("logs/train_loss.csv.gz"), title_of("run-a-tag-loss.csv"), title_of("loss/val.tsv")
    ('train_loss', 'a/loss', 'loss/val')
    """
    folder, _, name = plain_name(key).rpartition("/")
    stem = name.rpartition(".")[0]
    is_set = folder and " " not in words_of(stem) and NAMES(stem).says_mode
    return f"{folder.rpartition('/')[2]}/{stem}" if is_set else _TAG.sub(r"\1/\2", stem)


def titled(name: str, title: str) -> str:
    """Return how the only series of a file is called, by the title if its own name says less.

    >>> titled("value", "loss"), titled("val", "loss/val"), titled("MultiClass", "test_error")
    ('loss', 'loss/val', 'test_error/MultiClass')
    >>> titled("acc", "loss"), titled("price", "shop")
    ('acc', 'price')
    """
    if title and name.lower() == VALUE:
        return title
    if NAMES(name).collection or not NAMES(title).is_metric:
        return name
    says_nothing = name.isdigit() or name.lower() in re.split("[/ ]", words_of(title))
    return title if says_nothing else f"{title}/{name}"
