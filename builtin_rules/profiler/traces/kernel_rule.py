"""KernelRule: the base class of rules that judge the kernels of each GPU in each window."""

from abc import abstractmethod
from typing import Any, ClassVar

from builtin_rules.profiler.statistics.samples import Device
from builtin_rules.profiler.statistics.window_rule import WindowRule
from builtin_rules.profiler.traces.kernels import NO_KERNELS, Kernels, kernels_by_gpu
from smdebug.rules.extensions import TorchTraces


class KernelRule(WindowRule):
    """A rule whose condition is met if some GPU meets it.

    Attributes
    ----------
    LACKING
        Why a window with kernels is not judged if no GPU can be.
    """

    LACKING: ClassVar[str] = NO_KERNELS
    required_inputs = (TorchTraces(),)

    def _prepare(self) -> None:
        self._numbers: dict[Device, dict[str, float]] = {}

    def judge(self, step: int) -> bool:
        """Return whether some GPU meets the condition."""
        gpus = kernels_by_gpu(self.events(step))
        self.record_points(self._report["Datapoints"] + len(gpus))
        if not gpus:
            return self.not_judged(NO_KERNELS)
        ready = {gpu: traces for gpu, traces in gpus.items() if self.can_judge(traces)}
        met = [self._judge_one(step, gpu, traces) for gpu, traces in ready.items()]
        return self.any_met(met, self.LACKING)

    def _judge_one(self, step: int, gpu: Device, traces: list[Kernels]) -> bool:
        met, self._numbers[gpu] = self.judge_gpu(step, gpu, traces)
        if met:
            self.count_violations()
        return met

    @abstractmethod
    def can_judge(self, traces: list[Kernels]) -> bool:
        """Return whether the kernels of a GPU, trace by trace, have what the rule needs."""

    @abstractmethod
    def judge_gpu(
        self, step: int, gpu: Device, traces: list[Kernels]
    ) -> tuple[bool, dict[str, float]]:
        """Return whether a GPU meets the condition, and its numbers for the report."""

    def details(self) -> dict[str, Any]:
        """Return the numbers of the latest window by node and GPU."""
        return self.details_of(self._numbers)


def idle_percent(traces: list[Kernels]) -> float:
    """Return the share of a GPU's time in which no kernel runs, in percent."""
    span = sum(kernels.span for kernels in traces)
    return 100 * sum(kernels.idle for kernels in traces) / span if span else 0.0
