"""PolicyEntropyCollapse: a policy no longer explores, since its entropy has gone."""

import re
import statistics
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from itertools import islice
from typing import Final

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.parameters import count, share
from builtin_rules.statistics.series.recoveries import Recoveries
from builtin_rules.statistics.tensor_selection import TensorKey, any_met
from builtin_rules.statistics.training_kind import TrainingKind, training_kind
from builtin_rules.statistics.training_scalars import REWARDS, finite_scalars
from smdebug.rules.extensions import Quantity, Severity, TensorInput

ENTROPY: Final = "entropy"
SUPERVISED: Final = "not judged: the entropy of a supervised training is no policy's"
CONTINUOUS: Final = "not judged: the actions are continuous"
TOO_FEW: Final = "too few rows below the limit"
SLOWER_SHARE: Final = 0.5  # of the mean fall since the first row
SOLVED_SHARE: Final = 0.9  # of the range of rewards
REWARDS_AT_LEAST: Final = 20

_NUMBER: Final = r"([_ ]?(loss|mean|avg))?(_output_0)?$"
_POLICY: Final = r"(policy|action|actor|pi)[_ ]?"
ENTROPIES: Final = TensorInput(
    "the entropy of a policy",
    (),
    (rf"(?i)(^|[/. ])({_POLICY})?((mean|avg|curr)[_ ])?entropy{_NUMBER}",),
    r"(?i)attention|cross|router|codebook|code_",
)
_OF_POLICY: Final = re.compile(rf"(?i){_POLICY}(\w*_)?entropy|entropy_loss")
_DEVIATION: Final = TensorInput("deviations", (), (r"(?i)(^|/)(action_|log_)?std$",))


@dataclass(slots=True)
class _Entropies:
    """The entropies of one policy."""

    latest: deque[float]  # as many as the rule's patience
    first: float | None = None
    sign: float = 1.0
    is_differential: bool = False
    rows: int = 0
    low: int = 0  # latest rows in a row below the limit

    def add(self, value: float, share_of_first: float, *, is_loss: bool) -> float:
        """Add a value and return the entropy it stands for."""
        if self.first is None:
            self.sign = -1.0 if is_loss and value < 0 else 1.0
            self.first = self.sign * value
        entropy = self.sign * value
        self.is_differential |= entropy < -1e-6 * abs(self.first) or self.first <= 0
        self.low = self.low + 1 if entropy < share_of_first * self.first else 0
        self.rows += 1
        self.latest.append(entropy)
        return entropy

    def stays(self) -> bool:
        """Return whether the latest entropies fall much more slowly than all before them."""
        values, half = list(self.latest), len(self.latest) // 2
        if not half or self.first is None:
            return True
        fall = statistics.median(values[:half]) - statistics.median(values[-half:])
        return fall / half < SLOWER_SHARE * (self.first - values[-1]) / self.rows


class PolicyEntropyCollapse(DeclaredRule):
    """Met when the entropy of a policy is below `threshold` of its first value for `patience` rows.

    A row is a saved step of mode TRAIN, or without a mode, that has the entropy. An entropy at the
    limit is not below it. An `entropy_loss` that begins below 0 is a negated entropy, as in Stable
    Baselines.

    The entropy must stay there: in these rows it falls at most half as fast as on average since the
    first. The entropy of continuous actions can pass 0 on its way down and is not judged: one that
    was negative, or in a trial with the deviation of the actions. If a reward is saved and is in
    the highest tenth of its range, the policy has solved its task, and the finding is a note.

    NaN and infinity are left out. Entropies that are not named after a policy are not judged in
    supervised trainings and language models. Each entropy and worker is judged by itself.
    """

    READS = "the tensors named as the entropy of a policy or its loss; and rewards."
    threshold = share("Share of the first entropy.", 0.05, "of the first entropy")
    patience = count("Rows for which the entropy stays below it.", 30, "rows")
    QUANTITIES = (Quantity(ENTROPY, "entropy of the policy", worse="below"),)

    required_inputs = (ENTROPIES,)

    def _prepare(self) -> None:
        self._policies: dict[TensorKey, _Entropies] = {}
        self._rewards: dict[TensorKey, list[float]] = {}
        self._recoveries = Recoveries(self, self.patience)

    def invoke_at_step(self, step: int) -> bool:
        """Judge the entropies of global step `step`."""
        trial = self.base_trial
        for key, reward in finite_scalars(trial, step, REWARDS).items():
            self._rewards.setdefault(key, []).append(reward)
        entropies = finite_scalars(trial, step, ENTROPIES)
        if not entropies:
            return self.not_judged("no entropy of a policy at this step")
        if _DEVIATION.is_in(trial):
            return self.not_judged(CONTINUOUS)
        judged = {key: value for key, value in entropies.items() if self._is_of_policy(key[0])}
        if not judged:
            return self.not_judged(SUPERVISED)
        answers = [self._judge(step, key, value) for key, value in judged.items()]
        return any_met(self, answers, CONTINUOUS)

    def _is_of_policy(self, name: str) -> bool:
        if _OF_POLICY.search(name):
            return True
        supervised = {TrainingKind.SUPERVISED, TrainingKind.LANGUAGE_MODEL}
        return training_kind(self.base_trial) not in supervised

    def _judge(self, step: int, key: TensorKey, value: float) -> bool | None:
        policy = self._policies.setdefault(key, _Entropies(deque(maxlen=self.patience)))
        is_loss = "loss" in key[0].rpartition("/")[2].lower()
        entropy = policy.add(value, self.threshold, is_loss=is_loss)
        if policy.is_differential or policy.first is None:
            return None
        limit = self.threshold * policy.first
        met = policy.low >= self.patience and policy.stays()
        is_solved = met and any(map(_is_highest, self._rewards.values()))
        note = f"From {policy.first:.4g}; below the limit for {policy.low} rows."
        severity = Severity.WARNING
        if is_solved:
            note, severity = f"{note} The reward is at its highest.", Severity.NOTE
        self._recoveries.add(step, [key] if met else (), {key: entropy >= limit})
        return self.record(
            key, step, ENTROPY, entropy, limit, met=met, note=note, severity=severity
        )


def _is_highest(rewards: Collection[float]) -> bool:
    """Return whether the latest rewards are in the highest tenth of the range of rewards."""
    if len(rewards) < REWARDS_AT_LEAST:
        return False
    latest = statistics.median(islice(reversed(list(rewards)), REWARDS_AT_LEAST // 2))
    low, high = min(rewards), max(rewards)
    return latest > low + SOLVED_SHARE * (high - low) and high > low
