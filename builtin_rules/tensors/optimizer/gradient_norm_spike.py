"""GradientNormSpike: gradient norms jump far above their usual level."""

import math
import re
import statistics
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.noise_levels import NOISE_WINDOW, spread
from builtin_rules.statistics.parameters import positive
from builtin_rules.statistics.tensor_selection import (
    GRADIENTS,
    LOSSES,
    TensorKey,
    any_met,
    reductions,
    wanted,
)
from builtin_rules.statistics.training_scalars import (
    GRADIENT_NORMS,
    finite_scalars,
    scalars_of_mode,
)
from smdebug.rules.extensions import Quantity, Severity, TensorInput, WantedMeasure

NORM: Final = "norm"
GROWTH: Final = "growth"
GLOBAL_NORM: Final = "norm of all gradients"
TOO_FEW: Final = "fewer than 20 gradient norms before this step"
WINDOW_ROWS: Final = 128  # latest rows that give the level
SPIKE_MIN_ROWS: Final = 20  # rows before the first judged one
RECENT_ROWS: Final = 10  # rows whose median the level is at least, as norms may grow
ROWS_AFTER_SPIKE: Final = 20  # rows after which a spike has passed or not
FOLLOWING_ROWS: Final = 3  # rows, from the spike on, in which the loss may follow
REPEATS_WITH_LOSS: Final = 4  # spikes within the window that the loss followed
MIN_REPEATS: Final = 6  # spikes within the window, in a run without losses
LARGEST_SHARE: Final = 0.1  # of the rows; more belong to another kind of batches
LOSS_DEVIATIONS: Final = 5.0
ALIKE_FACTOR: Final = 2.0  # times that a norm of the same kind of batches is lower at most
LOSS_RISE: Final = 0.05  # of the loss at a spike
LASTING_RISE: Final = 0.2  # of the loss after a spike
FEWER_BELOW: Final = 5  # one in so many losses may be lower after a spike
LATEST_ROWS: Final = 5
EXPLOSION_FACTOR: Final = 100.0
_OF_MODEL: Final = re.compile(r"(?i)total|global|optimizer/grad_norm")


@dataclass(slots=True)
class _Spike:
    """A spike, and the loss before it: the level, and by how much noise exceeds it."""

    row: int
    norm: float
    loss: float | None
    margin: float
    follows: bool = False
    losses: list[float] = field(default_factory=list)

    def add_loss(self, loss: float, row: int) -> None:
        self.losses.append(loss)
        if self.loss is not None and row < self.row + FOLLOWING_ROWS:
            self.follows |= loss > self.loss + max(self.margin, LOSS_RISE * abs(self.loss))

    def loss_stayed_up(self) -> bool:
        """Return whether the loss since the spike is clearly above that before it."""
        if self.loss is None or len(self.losses) <= RECENT_ROWS:
            return False
        limit = self.loss + max(self.margin, LASTING_RISE * abs(self.loss))
        halves = self.losses[:RECENT_ROWS], self.losses[RECENT_ROWS:]
        return all(sorted(half)[len(half) // FEWER_BELOW] > limit for half in halves)


@dataclass(slots=True)
class _Norms:
    """The norms of one series; holds at most `WINDOW_ROWS` of them, as logarithms."""

    rows: int = 0
    first: list[float] = field(default_factory=list)
    latest: deque[float] = field(default_factory=lambda: deque(maxlen=LATEST_ROWS))
    logs: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW_ROWS))
    spikes: deque[_Spike] = field(default_factory=deque)
    with_spikes: deque[float] = field(default_factory=lambda: deque(maxlen=WINDOW_ROWS))
    pending: _Spike | None = None
    in_a_row: int = 0
    exploded: bool = False

    def limit(self, factor: float, deviations: float) -> float | None:
        """Return the norm above which the next one is a spike, or None if there are too few."""
        if len(self.logs) < SPIKE_MIN_ROWS:
            return None
        logs = list(self.logs)
        level = max(statistics.median(logs), statistics.median(logs[-RECENT_ROWS:]))
        return math.exp(min(700.0, level + max(math.log(factor), deviations * spread(logs))))

    def add(self, norm: float, *, is_spike: bool) -> None:
        """Add a norm; a spike counts as the level, so that it does not hide the next one."""
        self.rows += 1
        self.latest.append(norm)
        if len(self.first) < SPIKE_MIN_ROWS:
            self.first.append(norm)
        self.in_a_row = self.in_a_row + 1 if is_spike else 0
        self.with_spikes.append(norm)
        while self.spikes and self.spikes[0].row <= self.rows - WINDOW_ROWS:
            self.spikes.popleft()
        self.logs.append(statistics.median(self.logs) if is_spike else math.log(norm))

    def share_like(self, spikes: list[_Spike]) -> float:
        """Return the share of the latest rows whose norms are like those of spikes, or larger."""
        least = statistics.median(spike.norm for spike in spikes) / ALIKE_FACTOR
        return sum(norm >= least for norm in self.with_spikes) / len(self.with_spikes)

    def growth(self) -> float:
        """Return how many times the first norms the latest ones are."""
        return statistics.median(self.latest) / statistics.median(self.first)


class GradientNormSpike(DeclaredRule):
    """Met when gradient norms spike and the loss follows, when spikes repeat, or norms explode.

    A norm is a spike if it is above `factor` times the level of the norms before it, and its
    logarithm is above that of the level by more than `deviations` robust deviations; a norm at the
    limit is none. The level is the median of the last 128 rows, or of the last 10 if that is
    higher; it takes 20 rows. Spikes themselves count as the level. A row is a saved step of mode
    TRAIN, or without a mode, that has the norm.

    A single spike is a note. The condition is met if

    - of the first and of the last 10 losses in the 20 rows from the spike on, eight are above the
      median of the 20 losses before by 20 % and by five robust deviations; or, in a run without
      losses, norms have been above the limit in all 20 rows;
    - within 128 rows there are four spikes that the loss follows within three rows, or six spikes
      in a run without losses, unless more than 10 % of the norms are at least half as large as
      these: then batches are of two kinds, as in a training of several tasks;
    - the median of the last 5 norms is more than 100 times that of the first 20. If the loss is
      higher than in the first 20 rows too, this is an error; if it is lower, a note.

    If norms stay above the limit for 20 rows while the loss does not rise, as after unfreezing
    layers, they are the new level. The loss is the mean over all scalar losses of the worker. Each
    norm and worker is judged by itself; of several norms, those of the whole model alone, if there
    are such. Without norms, the norm of all saved gradients of a worker is judged.
    """

    READS = (
        "the collection gradient_norms, or the norms of the collection gradients; and the "
        "collection losses."
    )
    factor = positive("How many times the level a spike exceeds.", 4.0, "times the median")
    deviations = positive("How far a spike exceeds the noise.", 5.0, "robust deviations of the log")
    QUANTITIES = (
        Quantity(NORM, "gradient norm, and the limit for spikes", log=True),
        Quantity(GROWTH, "median of the latest norms (times that of the first 20)", log=True),
    )

    required_inputs = (
        TensorInput(
            "gradient norms or gradients", (*GRADIENT_NORMS.collections, *GRADIENTS.collections)
        ),
    )

    @property
    def wants(self) -> list[WantedMeasure]:
        """The norms of the gradients, unless the trial holds norms."""
        if GRADIENT_NORMS.is_in(self.base_trial):
            return []
        return wanted(GRADIENTS, "l2")

    def _prepare(self) -> None:
        self._series: dict[TensorKey, _Norms] = {}
        self._losses: dict[str, deque[float]] = {}  # by worker
        self._first_losses: dict[str, list[float]] = {}
        self._gradients: dict[str, frozenset[str]] = {}  # the saved ones of each worker

    def invoke_at_step(self, step: int) -> bool:
        """Judge the gradient norms of global step `step`."""
        norms = self._norms(step)
        usable = {key: norm for key, norm in norms.items() if math.isfinite(norm) and norm > 0}
        losses = self._mean_losses(step)
        if not usable:
            self._remember(losses)
            return self.not_judged("no gradient norm of training at this step")
        answers = [self._judge(step, key, norm, losses.get(key[1])) for key, norm in usable.items()]
        self._remember(losses)
        return any_met(self, answers, TOO_FEW)

    def _norms(self, step: int) -> dict[TensorKey, float]:
        norms = scalars_of_mode(self.base_trial, step, GRADIENT_NORMS)
        whole = {key: norm for key, norm in norms.items() if _OF_MODEL.search(key[0])}
        if norms or GRADIENT_NORMS.is_in(self.base_trial):
            return whole or norms
        return self._norms_of_gradients(step)

    def _norms_of_gradients(self, step: int) -> dict[TensorKey, float]:
        saved = self.base_trial.saved_by(step, GRADIENTS.names(self.base_trial, step))
        squares: dict[str, dict[str, float]] = {}
        for (name, worker), norm in reductions(self.base_trial, step, saved, "l2").items():
            squares.setdefault(worker, {})[name] = norm * norm
        return {
            (GLOBAL_NORM, worker): math.sqrt(sum(of_worker.values()))
            for worker, of_worker in squares.items()
            if self._gradients.setdefault(worker, frozenset(of_worker)) == of_worker.keys()
        }

    def _mean_losses(self, step: int) -> dict[str, float]:
        """Return the mean of the finite losses of each worker."""
        by_worker: dict[str, list[float]] = {}
        for (_, worker), loss in finite_scalars(self.base_trial, step, LOSSES).items():
            by_worker.setdefault(worker, []).append(loss)
        return {worker: sum(losses) / len(losses) for worker, losses in by_worker.items()}

    def _remember(self, losses: Mapping[str, float]) -> None:
        for worker, loss in losses.items():
            self._losses.setdefault(worker, deque(maxlen=NOISE_WINDOW)).append(loss)
            first = self._first_losses.setdefault(worker, [])
            if len(first) < SPIKE_MIN_ROWS:
                first.append(loss)

    def _judge(self, step: int, key: TensorKey, norm: float, loss: float | None) -> bool | None:
        norms = self._series.setdefault(key, _Norms())
        limit = norms.limit(self.factor, self.deviations)
        is_spike = limit is not None and norm > limit
        norms.add(norm, is_spike=is_spike)
        if limit is None:
            return None
        begins = norms.in_a_row == 1
        self.record(
            key, step, NORM, norm, limit, met=begins, note="A spike.", severity=Severity.NOTE
        )
        if begins:
            self._begin_spike(key[1], norms, norm)
        for spike in norms.spikes:
            if loss is not None and norms.rows < spike.row + ROWS_AFTER_SPIKE:
                spike.add_loss(loss, norms.rows)
        met = self._judge_passing(step, key, norms, limit)
        met |= self._judge_repeats(step, key, norms, limit)
        return met | self._judge_growth(step, key, norms)

    def _begin_spike(self, worker: str, norms: _Norms, norm: float) -> None:
        losses = list(self._losses.get(worker, ()))[-ROWS_AFTER_SPIKE:]
        level, margin = None, 0.0
        if len(losses) >= LATEST_ROWS:
            level = statistics.median(losses)
            margin = LOSS_DEVIATIONS * spread(losses)
        spike = _Spike(norms.rows, norm, level, margin)
        norms.spikes.append(spike)
        norms.pending = norms.pending or spike

    def _judge_passing(self, step: int, key: TensorKey, norms: _Norms, limit: float) -> bool:
        """Judge the spike of 20 rows ago by what followed it."""
        spike = norms.pending
        if spike is None or norms.rows < spike.row + ROWS_AFTER_SPIKE - 1:
            return False
        norms.pending = None
        lasts = norms.in_a_row >= ROWS_AFTER_SPIKE
        if spike.loss_stayed_up():
            note = f"The loss has stayed higher for {ROWS_AFTER_SPIKE} rows."
            return self.found(step, *key, spike.norm, limit, note)
        if lasts and spike.loss is None:
            note = f"It lasts for {ROWS_AFTER_SPIKE} rows."
            return self.found(step, *key, norms.latest[-1], limit, note)
        if lasts:
            norms.logs.clear()
            self.found(step, *key, norms.latest[-1], limit, "The new level.", Severity.NOTE)
        return False

    def _judge_repeats(self, step: int, key: TensorKey, norms: _Norms, limit: float) -> bool:
        spikes = [*norms.spikes]
        if not norms.in_a_row and spikes and norms.rows - spikes[-1].row >= FOLLOWING_ROWS:
            return False  # nothing new since it was judged
        has_losses = any(spike.loss is not None for spike in spikes)
        spikes = [spike for spike in spikes if spike.follows or not has_losses]
        enough = REPEATS_WITH_LOSS if has_losses else MIN_REPEATS
        if len(spikes) < enough or norms.share_like(spikes) > LARGEST_SHARE:
            return False
        followed = ", and the loss follows" if has_losses else ""
        largest = max(spike.norm for spike in spikes)
        note = f"{len(spikes)} spikes within {min(norms.rows, WINDOW_ROWS)} rows{followed}."
        return self.found(step, *key, largest, limit, note)

    def _judge_growth(self, step: int, key: TensorKey, norms: _Norms) -> bool:
        if norms.rows < SPIKE_MIN_ROWS + LATEST_ROWS:
            return False
        growth, limit = norms.growth(), EXPLOSION_FACTOR
        severity, note = self._severity_of_growth(key[1])
        is_first = growth > limit and not (norms.exploded and severity is Severity.NOTE)
        norms.exploded = growth > limit
        return self.record(
            key, step, GROWTH, growth, limit, met=is_first, note=note, severity=severity
        )

    def _severity_of_growth(self, worker: str) -> tuple[Severity, str]:
        latest = list(self._losses.get(worker, ()))[-LATEST_ROWS:]
        if len(latest) < LATEST_ROWS:
            return Severity.WARNING, "The norms have exploded."
        first = statistics.median(self._first_losses[worker])
        if statistics.median(latest) > first:
            return Severity.ERROR, "The norms have exploded, and the loss has risen."
        return Severity.NOTE, "The norms have exploded, but the loss has fallen."
