"""MaskedOrShiftedLabels: labels are shifted twice, or masked where they should count."""

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from builtin_rules.declared_rule import DeclaredRule
from builtin_rules.statistics.sustained import steps_in_a_row
from builtin_rules.statistics.tensor_selection import any_met
from builtin_rules.statistics.training_scalars import scalars_of_mode
from smdebug.rules.extensions import Quantity, Severity, TensorInput

STEPS: Final = "steps with wrong labels"
TARGETS: Final = TensorInput("targets of a cross entropy", (), ("^targets/(?!broadcast$)",))
COUNTED: Final = "targets/counted"
COMPARED: Final = "targets/compared"
NEXT: Final = "targets/next_tokens"
AFTER_NEXT: Final = "targets/tokens_after_next"
ENDS: Final = "targets/end_tokens"
IGNORED_ENDS: Final = "targets/ignored_end_tokens"
MIN_TARGETS: Final = 16  # fewer may agree by chance


class Fault(NamedTuple):
    """What is wrong with labels, the tensor that shows it, and how serious it is."""

    note: str
    tensor: str
    severity: Severity


MASKED: Final = Fault("No label counts: all are ignored.", COUNTED, Severity.ERROR)
SHIFTED: Final = Fault(
    "Labels are shifted twice: each is the token after the next one.",
    AFTER_NEXT,
    Severity.ERROR,
)
ENDLESS: Final = Fault(
    "The end token is padding too, and its label is always ignored.",
    IGNORED_ENDS,
    Severity.WARNING,
)


class MaskedOrShiftedLabels(DeclaredRule):
    """Met when the labels of a cross entropy are wrong at `patience` saved steps in a row.

    The hook compares the targets that the loss keeps with the tokens that the model was called
    with, whoever shifts or masks them. The condition is met if

    - no target counts, since all are the index that the loss ignores;
    - each of at least 16 targets that count is the token after the next one, and not each is the
      next token: the labels were shifted already, and the model or the script shifts them again.
      The last two positions of a row are not compared;
    - the last token of each padded row is the padding token, and is ignored where the target before
      it counts: labels of padding are masked, and the end of the sequence with them (warning).

    Only training steps count, and each worker is judged separately. Steps without a row that ends
    in the padding token neither extend nor end a series of the last kind.
    """

    READS = (
        "the collection targets, which hooks of `rule-runner train` save for PyTorch: numbers of "
        "targets."
    )
    SAVED = ("targets",)
    SEVERITY = Severity.ERROR
    patience = steps_in_a_row(3)
    QUANTITIES = (Quantity(STEPS, "saved steps in a row with wrong labels"),)

    required_inputs = (TARGETS,)

    def _prepare(self) -> None:
        self._steps: Counter[tuple[str, str]] = Counter()  # in a row, by worker and note

    def invoke_at_step(self, step: int) -> bool:
        """Judge the labels of global step `step`."""
        counts: dict[str, dict[str, float]] = {}
        for (name, worker), count in scalars_of_mode(self.base_trial, step, TARGETS).items():
            counts.setdefault(worker, {})[name] = count
        answers = [
            self._judge(step, worker, fault, is_bad=is_bad)
            for worker, numbers in counts.items()
            for fault, is_bad in _faults(numbers).items()
        ]
        return any_met(self, answers, "no targets at this step")

    def _judge(self, step: int, worker: str, fault: Fault, *, is_bad: bool) -> bool:
        series = worker, fault.note
        steps = self._steps[series] = self._steps[series] + 1 if is_bad else 0
        return self.record(
            (fault.tensor, worker),
            step,
            STEPS,
            steps,
            self.patience,
            met=steps >= self.patience,
            note=fault.note,
            severity=fault.severity,
        )


def _faults(counts: Mapping[str, float]) -> dict[Fault, bool]:
    """Return which faults the counts of a step show, without those that they cannot show."""
    compared = counts.get(COMPARED, 0.0)
    faults = {MASKED: counts.get(COUNTED) == 0}
    if compared >= MIN_TARGETS:
        faults[SHIFTED] = counts[AFTER_NEXT] == compared > counts[NEXT]
    if counts.get(ENDS):
        faults[ENDLESS] = counts[NEXT] == compared and counts[IGNORED_ENDS] == counts[ENDS]
    return faults
