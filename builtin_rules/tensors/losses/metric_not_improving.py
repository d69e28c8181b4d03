"""MetricNotImproving: no metric of a run has risen, and none is good."""

import re
from types import MappingProxyType
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.losses.judge import LossJudge
from builtin_rules.statistics.losses.objective import objectives
from builtin_rules.statistics.parameters import count, share
from builtin_rules.statistics.series.rising_series import RisingSeries
from builtin_rules.statistics.tensor_selection import LOSSES, TensorKey
from builtin_rules.statistics.training_kind import TrainingKind, is_resumed
from builtin_rules.statistics.training_scalars import finite_scalars
from smdebug.core.modes import ModeKeys
from smdebug.rules.extensions import Quantity, TensorInput

METRIC: Final = "metric"
LEAST_RISE: Final = 0.05
CHANCE_MARGIN: Final = 0.05
LEARNED_PERCENT: Final = 20.0  # of a loss, by which it falls where something is learned
MAX_SERIES: Final = 64  # judged at the same time

_CURVE: Final = r"(roc[-_ ]?)?auc([-_ ]?roc)?|auroc"
_ZERO: Final = (
    r"mcc|matthews[-_ ]?corr\w*|kappa|m?ap|(sacre)?bleu|rouge[-_ ]?[12l]?(sum)?|exact[-_ ]?match"
)
_OVERLAP: Final = (
    r"(f1(?!\d)|dice)([-_ ]?(score|coeff?))?|m?iou|jaccard|precision|recall|sensitivity"
)
_ACCURACY: Final = r"acc|\w*accuracy|(acc|prec)@[15]|top[-_ ]?[15]"
_BEFORE: Final = r"(?i)(^|[^a-z]|(?<![a-z])(train|val|valid|test|eval|dev))"
_AFTER: Final = r"(?![a-z])"
METRICS: Final = TensorInput(
    "metrics that rise",
    (),
    (
        rf"{_BEFORE}({_CURVE}|{_ZERO}|{_OVERLAP}|{_ACCURACY}){_AFTER}",
        r"(?<=[a-z])(Acc|AUC|F1|IoU|Dice|Precision|Recall)(?![a-z])",
    ),
    r"(?i)loss(?!es/)|err|reward|token|importance|shap|time|speed|grad|(?<![a-z])(best|max|min|std|var|lr|threshold"
    r"|target|chance|random|baseline)(?![a-z])",
)
_OF_CURVE: Final = re.compile(rf"{_BEFORE}({_CURVE}){_AFTER}|(?-i:(?<=[a-z])AUC(?![a-z]))")
_OF_ZERO: Final = re.compile(rf"{_BEFORE}({_ZERO}){_AFTER}")
_OF_ACCURACY: Final = re.compile(rf"{_BEFORE}({_ACCURACY}){_AFTER}|(?-i:(?<=[a-z])Acc(?![a-z]))")


class MetricNotImproving(DeclaredRule):
    """Met when no metric has risen at the end of the data, and one is certainly level.

    A metric is a scalar named as an accuracy, F1 score, area under a curve, overlap, precision,
    recall, correlation, BLEU, ROUGE or the like, of training or of evaluation. The condition is
    met for a metric of `rows` rows or more if

    - no metric of its mode has risen by the Mann-Kendall test, which is exact for few rows;
    - this one has certainly not risen by 0.05, or by the spread of a row, in the same test;
    - its mean is within 0.05 of the level of chance: 0.5 for the area under a ROC curve, and 0 for
      all others but accuracies. For accuracies, F1 scores, overlaps, precision and recall it
      is enough that the mean is below `good`, of 1 or of 100 percent, if all rows are equal, as
      they are if one class is predicted, and no loss of its mode falls in the second half of its
      rows; or if no metric of the other mode has risen and no loss has fallen by 20 %, or by 1 %
      and in the second half of its rows too.

    NaN and infinity are left out. Each metric and worker is judged by itself. Adversarial and
    reinforcement trainings are not judged, nor runs that were resumed, which have learned before,
    nor the accuracy of tokens or rewards.
    """

    READS = "the scalars named as metrics of the accuracy kind; and the collection losses."
    UNSUITED = MappingProxyType(
        {
            TrainingKind.ADVERSARIAL: "adversarial training: its metrics need not rise",
            TrainingKind.REINFORCEMENT: "reinforcement training: its rewards are judged",
        }
    )
    good = share("Level of a metric that need not rise.", 0.8, "of the highest metric")
    rows = count("Rows of a metric that it takes.", 8, "rows", minimum=4)
    QUANTITIES = (Quantity(METRIC, "level of the metric", worse="below"),)

    required_inputs = (METRICS,)

    def _prepare(self) -> None:
        self._metrics: dict[tuple[ModeKeys, TensorKey], RisingSeries] = {}
        self._losses: dict[tuple[ModeKeys, str], LossJudge] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Judge nothing yet: add the metrics and losses of global step `step`."""
        trial = self.base_trial
        reason = self.unsuited(trial)
        if reason:
            return self.not_judged(reason)
        has_metric = False
        for mode in (ModeKeys.TRAIN, ModeKeys.EVAL):
            for key, metric in finite_scalars(trial, step, METRICS, mode).items():
                has_metric = True
                if (mode, key) in self._metrics or len(self._metrics) < MAX_SERIES:
                    series = self._metrics.setdefault((mode, key), RisingSeries(1.0))
                    series.add(metric, self.rows)
            losses = finite_scalars(trial, step, LOSSES, mode)
            by_name = {name: loss for (name, _), loss in losses.items()}
            for name, loss in objectives(by_name).items():
                if (mode, name) in self._losses or len(self._losses) < MAX_SERIES:
                    self._losses.setdefault((mode, name), LossJudge()).add(loss)
        return False if has_metric else self.not_judged("no metric at this step")

    def invoke_at_end(self, step: int) -> bool:
        """Judge what the end of the data tells of each metric."""
        if is_resumed(self.base_trial, step):
            return False  # it has learned before
        risen = {mode for (mode, _), metric in self._metrics.items() if metric.has_risen()}
        improving = {mode for (mode, _), loss in self._losses.items() if loss.still_falls()}
        learns = bool(risen or improving) or any(
            loss.total_fall() >= LEARNED_PERCENT for loss in self._losses.values()
        )
        answers = [
            self.record(key, step, METRIC, *metric.ends(), met=True, note="Never rose.")
            for (mode, key), metric in self._metrics.items()
            if mode not in risen
            and metric.rows >= self.rows
            and self._is_poor(key[0], metric, learns=learns, improves=mode in improving)
            and metric.stays(LEAST_RISE * _scale(metric))
        ]
        return any(answers)

    def _is_poor(self, name: str, metric: RisingSeries, *, learns: bool, improves: bool) -> bool:
        """Return whether the level is that of chance, or may be and nothing was learned."""
        level = metric.mean() / _scale(metric)
        if _OF_CURVE.search(name):
            return abs(level - 0.5) <= CHANCE_MARGIN
        if abs(level) <= CHANCE_MARGIN:
            return not (learns and _OF_ACCURACY.search(name))  # there may be many classes
        is_poor = level < self.good and (not learns or (metric.is_constant() and not improves))
        return is_poor and not _OF_ZERO.search(name)


def _scale(metric: RisingSeries) -> float:
    """Return the highest possible metric."""
    return 100.0 if metric.highest > 1 else 1.0
