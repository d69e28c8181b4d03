"""FeatureImportanceOverweight: a handful of features carries (almost) a whole model."""

import math
import re
from typing import Any, Final, NamedTuple

from builtin_rules.selection import LITERAL, Saved, named, numbers, saved
from smdebug.rules import Page, Quantity, Rule
from smdebug.rules.params import FloatParam, IntParam, PatternsParam, set_parameters

SHARE: Final = "share of the top features"
_THRESHOLD: Final = 0.8
_NFEATURES: Final = 3
_PATTERN: Final = ".*feature_importance/weight"
# How many rounds a young model has: docs/decisions/0012-importances-of-young-models.md.
YOUNG_ROUNDS: Final = 10
# The kind of importance ends where the feature's name, which may hold slashes too, begins.
_KIND: Final = re.compile(r".*?feature_importance/[^/]+(?=/)")


class Top(NamedTuple):
    """The most important features of one kind: their share, the first of them, of how many."""

    share: float
    first: Saved
    names: tuple[str, ...]
    used: int


class FeatureImportanceOverweight(Rule):
    """Met when the `nfeatures` most important features hold a share above `threshold`.

    Importances are grouped by kind (`feature_importance/<kind>/<feature>`) and by worker; a group
    is divided by its total and judged by itself, each step too. A feature is used if its importance
    is above 0. A share that equals `threshold` does not meet the condition. Groups with NaN,
    infinite or negative numbers are not judged.

    Where at most `nfeatures` features are used their share is 1 whatever the data: in the first
    rounds of a healthy model as well. Such a group meets the condition only once ten rounds have
    passed at all of whose saved steps it used no more. After it used at most `nfeatures`, a group
    is judged again ten rounds after it first used more. With `literal` every step is judged alone.
    """

    READS = "the importances that tensor_regex selects, one tensor for each feature."
    PARAMS = (
        FloatParam(
            "threshold",
            "Share that the most important features may hold together.",
            default=_THRESHOLD,
            minimum=0.0,
            maximum=1.0,
            unit="share of the total importance",
        ),
        IntParam(
            "nfeatures",
            "How many of the most important features are added up.",
            default=_NFEATURES,
            minimum=1,
            unit="features",
        ),
        PatternsParam(
            "tensor_regex",
            "Patterns: an importance is judged if one of them is found in its name.",
            default=_PATTERN,
        ),
        LITERAL,
    )
    QUANTITIES = (Quantity(SHARE, "share of the most important features (0 to 1)"),)
    PAGE = Page(
        why="""
        A model that rests on one or two features often rests on a leak: a copy of the label, an id,
        a date from after the event. It does well in validation and badly in use.
        """,
        save="""
        The collection `feature_importance` of the XGBoost hook:

            Hook(
                out_dir,
                include_collections=["feature_importance"],
                save_config=SaveConfig(save_interval=10),
            )
        """,
        missing="""
        A step without importances is skipped, and so are kinds with NaN, infinite or negative
        numbers. A kind whose total is 0 has shares of 0.
        """,
        remedy="""
        - See whether the features in the evidence are known when the model is used, or only after.
        - Train without them: if the rest does nearly as well, leave them out.
        - Where the features are right (few of them, or a law of nature), raise `threshold`.
        """,
        limits="""
        The importance `weight` counts splits: a leak that one split uses up holds a small share of
        them. `tensor_regex=feature_importance/gain` sees it. Data with hardly more than `nfeatures`
        features fires, however healthy: lower `nfeatures`. A model of which fewer than two steps
        are saved, or with more than ten rounds between them and fewer features than that, is judged
        late: save every tenth round or more often.
        """,
    )
    threshold: float
    nfeatures: int
    tensor_regex: tuple[str, ...]
    literal: bool

    def __init__(
        self,
        base_trial: Any,
        threshold: Any = _THRESHOLD,
        nfeatures: Any = _NFEATURES,
        tensor_regex: Any = _PATTERN,
        literal: Any = False,
    ) -> None:
        super().__init__(base_trial)
        set_parameters(
            self,
            threshold=threshold,
            nfeatures=nfeatures,
            tensor_regex=tensor_regex,
            literal=literal,
        )
        # Whether each group uses few features, and since which step: one entry for each kind of
        # importance and worker, kept for good.
        self._few: dict[tuple[str, str], tuple[bool, float]] = {}

    def invoke_at_step(self, step: int) -> bool:
        """Judge the importances of global step `step`, kind by kind."""
        groups: dict[tuple[str, str], list[Saved]] = {}
        names = named(self.base_trial, step, [], self.tensor_regex)
        for one in saved(self.base_trial, step, names):
            groups.setdefault((_kind(one.name), one.worker), []).append(one)
        tops = {
            group: top
            for group, members in groups.items()
            if (top := self._top(members, step)) is not None
        }
        if not tops:
            return self.not_judged("no importances at this step")
        old = {group: top for group, top in tops.items() if self._is_old(group, top, step)}
        if not old:
            return self.not_judged(
                f"at most {self.nfeatures} features used so far, or until lately"
            )
        answers = [self._judge(top, step) for top in old.values()]
        return any(answers)

    def _top(self, members: list[Saved], step: int) -> Top | None:
        """Return the most important features of a group, or None if its numbers are no shares."""
        found: dict[Saved, float] = {}
        for one in members:
            array = numbers(one, step)
            if array is not None and array.size == 1:
                found[one] = float(array.reshape(-1)[0])
        if not found or not all(0 <= value < math.inf for value in found.values()):
            return None
        total = math.fsum(found.values()) or 1.0
        most = sorted(found, key=lambda one: (-found[one], one.name))[: self.nfeatures]
        share = math.fsum(found[one] for one in most) / total
        used = sum(value > 0 for value in found.values())
        return Top(share, most[0], tuple(map(_feature, most)), used)

    def _is_old(self, group: tuple[str, str], top: Top, step: int) -> bool:
        """Say whether a model has had enough rounds for its number of features to tell."""
        few = top.used <= self.nfeatures
        before, since = self._few.get(group, (few, step if few else -math.inf))
        if before is not few:
            since = step
        self._few[group] = (few, since)
        return self.literal or step - since >= YOUNG_ROUNDS

    def _judge(self, top: Top, step: int) -> bool:
        met = top.share > self.threshold
        note = f"{', '.join(top.names)}, of {top.used} features used."
        return self.measured(
            step,
            SHARE,
            top.share,
            self.threshold,
            met=met,
            tensor=top.first.name,
            worker=top.first.worker,
            note=note,
        )


def _feature(one: Saved) -> str:
    """Return the feature that an importance is one of."""
    return one.name.removeprefix(_kind(one.name)).removeprefix("/")


def _kind(name: str) -> str:
    """Return what the importances of one kind have in common.

    >>> _kind("feature_importance/gain/area/mean"), _kind("importances/f0")
    ('feature_importance/gain', 'importances')
    """
    found = _KIND.match(name)
    return found[0] if found else name.rpartition("/")[0]
