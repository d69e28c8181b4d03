"""RepeatedBatches: batches repeat, arrive class by class, or are evaluated and trained with."""

from collections import Counter, deque
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import share
from builtin_rules.statistics.tensor_selection import any_met, numbers, saved_tensors
from builtin_rules.statistics.training_kind import TrainingKind
from builtin_rules.tensors.data.row_hashes import SeenRows, hashes
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Quantity, TensorInput

REPEATED: Final = "repeated batches"
FEW_CLASSES: Final = "batches of few classes"
LEAKED: Final = "evaluated rows that were trained with"
FINGERPRINTS: Final = "fingerprints/"
INPUTS: Final = TensorInput(
    "inputs", ("input_image", "input_sequence"), (f"^{FINGERPRINTS}inputs$",)
)
LABELS: Final = TensorInput("labels", ("labels",), (f"^{FINGERPRINTS}labels$",))
JUDGED_BATCHES: Final = 8  # that are judged together
SAME_SHARE: Final = 0.9  # share of the rows of a batch that another batch holds too
TIMES_MORE: Final = 2  # rows of the data, compared with those that repeat
SORTED_CLASSES: Final = 2  # in a batch of sorted data
MIN_CLASSES: Final = 4  # that a shuffled batch is expected to hold
MOST_CLASSES: Final = 50
MIN_ROWS: Final = 8  # of a batch
EVALUATED_ROWS: Final = 100  # rows
MIN_HITS: Final = 5  # fewer evaluated rows are natural duplicates
PURPOSE_SHARE: Final = 0.25  # three standard deviations of the share of 200 rows
TIMES_NATURAL: Final = 2  # evaluated rows, compared with those that natural duplicates explain
FULL: Final = "the batches repeat all rows so far: full batches, or a single one"
TOO_FEW: Final = f"fewer than {JUDGED_BATCHES} batches of inputs so far"


@dataclass(slots=True)
class _Batches:
    """The batches that one worker trained with and evaluated."""

    recent: deque[frozenset[int]] = field(default_factory=lambda: deque(maxlen=JUDGED_BATCHES))
    repeats: deque[bool] = field(default_factory=lambda: deque(maxlen=JUDGED_BATCHES))
    repeat_shares: deque[float] = field(default_factory=lambda: deque(maxlen=JUDGED_BATCHES))
    trained: SeenRows = field(default_factory=SeenRows)
    evaluated: SeenRows = field(default_factory=SeenRows)
    clean: int = 0  # evaluated rows in batches that were not trained with as a whole
    leaked: int = 0  # of those, rows that were trained with
    twins: int = 0  # of those, rows that their own batch holds twice
    sizes: int = 0  # of their batches, summed over the rows
    labels: Counter[int] = field(default_factory=Counter)
    few_classes: deque[bool] = field(default_factory=lambda: deque(maxlen=JUDGED_BATCHES))

    def are_training_data(self, hits: int, rows: int) -> bool:
        """Return whether so many of the evaluated rows were trained with as of training batches.

        Rows that are drawn at random come back before all were seen once.
        """
        expected = rows * sum(self.repeat_shares) / max(1, len(self.repeat_shares))
        return hits == rows or abs(hits - expected) < PURPOSE_SHARE * expected


class RepeatedBatches(DeclaredRule):
    """Met when most of the last 8 batches repeat, or hold two classes, or evaluated rows leaked.

    Repeats: in a share of at least `threshold_repeats` of the last 8 saved training batches, 90 %
    of the rows were in earlier ones among them. This counts only if the data have more: at least
    twice as many different rows came before or, if it is one batch, are evaluated. Otherwise a full
    batch, or a small set of data, repeats by design.

    Classes: a share of at least `threshold_repeats` of the last 8 training batches hold at most two
    classes, while a shuffled batch of the labels so far would hold four on average. Batches of
    fewer than 8 labels and more than 50 classes are not judged.

    Leak: more than `threshold_leak` of the evaluated rows, at least five of 100 or more, were
    trained with before. An evaluated batch that consists of such rows, or holds about as many of
    them as the latest training batches, does not count: it evaluates the training data on purpose.
    Where evaluated batches hold some of their rows twice, as short texts do, the leak must be twice
    as large as such duplicates of the data explain: their share, times the number of different
    training rows for each row of a batch. Each worker is judged separately.

    Rows are compared by hashes; at most 200,000 of each kind are remembered. Reinforcement learning
    repeats batches by design and is not judged.
    """

    READS = (
        "the tensors fingerprints/inputs and fingerprints/labels, a hash of each row; without "
        "them values of the collections input_image, input_sequence and labels."
    )
    SAVED = ("fingerprints",)
    threshold_repeats = share("Share of the last 8 batches that is bad.", 0.75, "share")
    threshold_leak = share("Largest accepted share of evaluated rows.", 0.1, "share")
    QUANTITIES = (
        Quantity(REPEATED, "share of the last 8 batches that repeat"),
        Quantity(FEW_CLASSES, "share of the last 8 batches with two classes or fewer"),
        Quantity(LEAKED, "share of evaluated rows that were trained with"),
    )
    UNSUITED = MappingProxyType(
        {TrainingKind.REINFORCEMENT: "reinforcement learning repeats batches by design"}
    )

    required_inputs = (
        TensorInput("inputs or labels", (*INPUTS.collections, "labels"), (f"^{FINGERPRINTS}",)),
    )

    def _prepare(self) -> None:
        self._batches: dict[str, _Batches] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Judge the batches up to global step `step`."""
        reason = self.unsuited(self.base_trial)
        if reason:
            return self.not_judged(reason)
        mode = self.base_trial.mode(step)
        answers: list[bool | None] = []
        reason = TOO_FEW
        for worker, rows in self._rows(INPUTS, step).items():
            batches = self._batches.setdefault(worker, _Batches())
            if mode is ModeKeys.EVAL:
                answers.append(self._leaks(step, worker, batches, rows))
                continue
            answers.append(self._repeats(step, worker, batches, rows))
            if answers[-1] is None and len(batches.recent) == JUDGED_BATCHES:
                reason = FULL
        if mode is not ModeKeys.EVAL:
            for worker, labels in self._rows(LABELS, step).items():
                batches = self._batches.setdefault(worker, _Batches())
                answers.append(self._has_few_classes(step, worker, batches, labels))
        return any_met(self, answers, reason)

    def _rows(self, tensors: TensorInput, step: int) -> dict[str, tuple[int, ...]]:
        """Return the hashes of the rows that each worker saved: fingerprints, or values."""
        names = tensors.names(self.base_trial, step)
        marked = [name for name in names if name.startswith(FINGERPRINTS)]
        rows: dict[str, tuple[int, ...]] = {}
        for saved in saved_tensors(self.base_trial, step, marked or names[:1]):
            array = numbers(saved, step)
            if array is not None and array.ndim:
                rows[saved.worker] = hashes(array, fingerprints=bool(marked))
        return rows

    def _repeats(
        self, step: int, worker: str, batches: _Batches, rows: tuple[int, ...]
    ) -> bool | None:
        batch = frozenset(rows)
        enough = SAME_SHARE * max(len(batch), 1)
        earlier = frozenset().union(*batches.recent)
        batches.repeats.append(len(batch & earlier) >= enough)
        batches.recent.append(batch)
        batches.repeat_shares.append(
            sum(row in batches.trained for row in batch) / max(len(batch), 1)
        )
        batches.trained.add(rows)
        if len(batches.repeats) < JUDGED_BATCHES:
            return None
        measured = sum(batches.repeats) / JUDGED_BATCHES
        is_bad = measured >= self.threshold_repeats
        trained, latest = len(batches.trained), len(frozenset().union(*batches.recent))
        # Several batches may be all that a save interval shows of an epoch in a fixed order.
        evaluated = len(batches.evaluated) if latest * SAME_SHARE <= len(batch) else 0
        if is_bad and max(trained / latest, evaluated / trained) < TIMES_MORE:
            return None
        note = (
            f"The last {JUDGED_BATCHES} batches hold {latest} of {trained} different rows so far."
        )
        key, limit = (None, worker), self.threshold_repeats
        return self.record(key, step, REPEATED, measured, limit, met=is_bad, note=note)

    def _has_few_classes(
        self, step: int, worker: str, batches: _Batches, labels: tuple[int, ...]
    ) -> bool | None:
        if len(labels) < MIN_ROWS or len(batches.labels) > MOST_CLASSES:
            return None
        batches.labels.update(labels)
        classes = len(set(labels))
        batches.few_classes.append(classes <= SORTED_CLASSES)
        total = batches.labels.total()
        expected = sum(1 - (1 - count / total) ** len(labels) for count in batches.labels.values())
        if len(batches.few_classes) < JUDGED_BATCHES or expected < MIN_CLASSES:
            return None
        measured = sum(batches.few_classes) / JUDGED_BATCHES
        key, limit = (None, worker), self.threshold_repeats
        met = measured >= limit
        note = f"This batch holds {classes} classes; a shuffled one would hold {expected:.1f}."
        return self.record(key, step, FEW_CLASSES, measured, limit, met=met, note=note)

    def _leaks(
        self, step: int, worker: str, batches: _Batches, rows: tuple[int, ...]
    ) -> bool | None:
        fresh = {row for row in rows if row not in batches.evaluated}
        hits = sum(row in batches.trained for row in fresh)
        batches.evaluated.add(tuple(fresh))
        if not batches.are_training_data(hits, len(fresh)):
            batches.clean += len(fresh)
            batches.leaked += hits
            counts = Counter(rows)
            batches.twins += sum(counts[row] > 1 for row in fresh)
            batches.sizes += len(rows) * len(fresh)
        if batches.clean < EVALUATED_ROWS:
            return None
        measured = batches.leaked / batches.clean
        natural = batches.twins * max(1.0, len(batches.trained) * batches.clean / batches.sizes)
        is_leak = batches.leaked >= max(MIN_HITS, TIMES_NATURAL * natural)
        key, limit = (None, worker), self.threshold_leak
        met = measured > limit and is_leak
        note = f"{batches.leaked} of {batches.clean} different rows."
        return self.record(key, step, LEAKED, measured, limit, met=met, note=note)
