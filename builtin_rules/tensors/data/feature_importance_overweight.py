"""FeatureImportanceOverweight: a few features determine (almost) the whole model."""

import math
import re
from typing import Final, NamedTuple

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import Declared, count, share
from builtin_rules.statistics.tensor_selection import (
    LITERAL,
    SavedTensor,
    only_number,
    saved_tensors,
)
from smdebug.rules.extensions import PatternsParam, Quantity, Severity, TensorInput

SHARE: Final = "share of the top features"
_THRESHOLD: Final = 0.8
_NFEATURES: Final = 3
_PATTERN: Final = ".*feature_importance/weight"
# The number of rounds of a young model: docs/decisions/0012-importances-of-young-models.md.
YOUNG_ROUNDS: Final = 10
# The most important features are at most this share of all: 0012-importances-of-young-models.md.
MOST_OF_ALL: Final = 0.2
# Shares of young healthy models: docs/decisions/0012-importances-of-young-models.md.
USUAL_SHARE: Final = 0.85
CLEAR_SHARE: Final = 0.95  # a leak, even if it falls
_DEFAULT_NAME: Final = re.compile(r"f(\d+)\Z")  # XGBoost's name of a column without a name
# The kind of importance ends before the name of the feature, which may contain slashes.
_KIND: Final = re.compile(r".*?feature_importance/[^/]+(?=/)")


class TopFeature(NamedTuple):
    """The most important features of one kind, their share, and the number of used features."""

    share: float
    first: SavedTensor
    names: tuple[str, ...]
    used: int


class FeatureImportanceOverweight(DeclaredRule):
    """Met when the `nfeatures` most important features hold a share above `threshold`.

    Importances are grouped by kind (`feature_importance/<kind>/<feature>`) and worker; each group
    is divided by its total and judged separately, at each step. A feature is used if its importance
    is above 0. A share equal to `threshold` does not meet the condition. Groups with NaN, infinite
    or negative numbers are not judged.

    If at most `nfeatures` features are used, their share is always 1, also in the first rounds of a
    healthy model. Such a group meets the condition only after ten rounds in which it used no more
    at any saved step. After that, it is judged again ten rounds after it first used more.

    Data with few features are judged by fewer than `nfeatures`: at most a fifth of all features,
    rounded, and at least one. All features are those used so far; default names tell more (`f29` is
    the last of at least 30). A share of at most 0.85 is a note. So is one of at most 0.95 at the
    first judged step, and where it is below that of the judged step before: a young model uses more
    features from round to round. With `literal`, or if `threshold` or `nfeatures` is given, every
    step is judged on its own, always by `nfeatures`, and nothing is a note.
    """

    READS = "the importances that tensor_regex selects, one tensor for each feature."
    SAVED = ("feature_importance",)
    threshold = share(
        "Largest tolerated share of the most important features.",
        _THRESHOLD,
        "share of the total importance",
    )
    nfeatures = count("Number of most important features to add up.", _NFEATURES, "features")
    tensor_regex = Declared[tuple[str, ...]](
        PatternsParam(
            "tensor_regex",
            "Patterns: an importance is judged if one of them matches in its name.",
            default=_PATTERN,
        )
    )
    literal = Declared[bool](LITERAL)
    QUANTITIES = (Quantity(SHARE, "share of the most important features (0 to 1)"),)

    def _prepare(self) -> None:
        self._inputs = TensorInput("importances of features", patterns=self.tensor_regex)
        self.required_inputs = (self._inputs,)
        self._features: dict[tuple[str, str], int] = {}  # so far, by kind and worker
        # By kind of importance and worker: whether it uses few features, and since which step.
        self._few: dict[tuple[str, str], tuple[bool, float]] = {}
        self._shares: dict[tuple[str, str], float] = {}  # at the latest judged step

    def invoke_at_step(self, step: int) -> bool:
        """Judge the importances of global step `step`, kind by kind."""
        groups: dict[tuple[str, str], list[SavedTensor]] = {}
        names = self._inputs.names(self.base_trial, step)
        for saved in saved_tensors(self.base_trial, step, names):
            groups.setdefault((_kind(saved.name), saved.worker), []).append(saved)
        tops = {
            group: top
            for group, members in groups.items()
            if (top := self._top(group, members, step)) is not None
        }
        if not tops:
            return self.not_judged("no importances at this step")
        old = {group: top for group, top in tops.items() if self._is_old(group, top, step)}
        if not old:
            return self.not_judged(
                f"at most {self.nfeatures} features used so far, or until lately"
            )
        answers = [self._judge(group, top, step) for group, top in old.items()]
        return any(answers)

    def _top(
        self, group: tuple[str, str], members: list[SavedTensor], step: int
    ) -> TopFeature | None:
        """Return the most important features of a group, or None if its numbers are invalid."""
        importances = {
            saved: value for saved in members if (value := only_number(saved, step)) is not None
        }
        if not importances or not all(0 <= value < math.inf for value in importances.values()):
            return None
        total = sum(importances.values()) or 1.0
        most = sorted(importances, key=lambda saved: (-importances[saved], saved.name))[
            : self._judged_features(group, importances)
        ]
        share = sum(importances[saved] for saved in most) / total
        used = sum(value > 0 for value in importances.values())
        return TopFeature(share, most[0], tuple(map(_feature, most)), used)

    def _judged_features(
        self, group: tuple[str, str], importances: dict[SavedTensor, float]
    ) -> int:
        """Return how many of the most important features to add up."""
        if self.binds():
            return self.nfeatures
        numbered = (_DEFAULT_NAME.match(_feature(saved)) for saved in importances)
        highest = max((1 + int(match[1]) for match in numbered if match), default=0)
        features = max(self._features.get(group, 0), highest, len(importances))
        self._features[group] = features
        return min(self.nfeatures, max(1, round(features * MOST_OF_ALL)))

    def _is_old(self, group: tuple[str, str], top: TopFeature, step: int) -> bool:
        """Return whether a model has had enough rounds to judge its number of features."""
        few = top.used <= self.nfeatures
        before, since = self._few.get(group, (few, step if few else -math.inf))
        if before is not few:
            since = step
        self._few[group] = (few, since)
        return self.binds() or step - since >= YOUNG_ROUNDS

    def _judge(self, group: tuple[str, str], top: TopFeature, step: int) -> bool:
        met = top.share > self.threshold
        before = self._shares.get(group, math.inf)
        self._shares[group] = top.share
        is_usual = top.share <= (CLEAR_SHARE if top.share < before else USUAL_SHARE)
        is_note = is_usual and not self.binds()
        note = f"{', '.join(top.names)}, of {top.used} features used."
        severity, key, limit = Severity.NOTE if is_note else None, top.first.key, self.threshold
        return self.record(
            key, step, SHARE, top.share, limit, met=met, note=note, severity=severity
        )


def _feature(saved: SavedTensor) -> str:
    """Return the name of the feature of an importance."""
    return saved.name.removeprefix(_kind(saved.name)).removeprefix("/")


def _kind(name: str) -> str:
    """Return the common prefix of the importances of one kind.

    >>> _kind("feature_importance/gain/area/mean"), _kind("importances/f0")
    ('feature_importance/gain', 'importances')
    """
    match = _KIND.match(name)
    return match[0] if match else name.rpartition("/")[0]
