"""GPUMemoryIncrease: the memory that is in use on some GPU jumps upwards."""

from typing import Any, Final

import numpy as np

from builtin_rules.profiler.growing import Series, extend_all
from builtin_rules.profiler.parameters import (
    MINUTE_US,
    SCAN_INTERVAL,
    NumberParam,
    patience,
    window,
)
from builtin_rules.profiler.samples import GPU_MEMORY, Device, Floats, by_device
from builtin_rules.profiler.window_rule import WindowRule
from smdebug.profiler.analysis.rules.utils import percentiles
from smdebug.rules import Page, Quantity
from smdebug.rules.params import BoolParam

RISE: Final = "increase"
NO_MEMORY: Final = "no GPU memory utilisation in this window"
TOO_FEW: Final = "no GPU with more than patience and window data points yet"


class GPUMemoryIncrease(WindowRule):
    """Met when the moving average of some GPU's memory use rises by more than `increase` points.

    The moving average is the mean of the newest `window` data points. It is compared with the one
    of a data point earlier, at each data point once there were more than ``window + 1`` and more
    than `patience` of the GPU. A rise of exactly `increase` does not meet the condition. With the
    defaults that takes a rise of the memory by more than 50 percentage points within ten data
    points.

    With `slow` it is compared with the average `window` data points earlier as well, once there are
    two such windows: that finds a leak that is spread over them.
    """

    READS = "the system metric GPUMemoryUtilization."
    PARAMS = (
        NumberParam(
            "increase",
            "How far the moving average may rise.",
            default=5,
            unit="percentage points",
            minimum=0,
            minimum_open=True,
        ),
        patience(1000, "data points"),
        window(10, "How many data points the moving average is taken of."),
        SCAN_INTERVAL,
        BoolParam(
            "slow",
            "Compare with the average `window` data points earlier as well; not documented.",
            default=False,
        ),
    )
    QUANTITIES = (Quantity(RISE, "largest rise of average GPU memory use (points)"),)
    PAGE = Page(
        why="""
        Memory that grows while the training goes on ends in an out-of-memory error, mostly hours
        later. What makes it grow is easiest to find at the moment at which it does.
        """,
        save="""
        Nothing of the training script: the platform's profiler samples the system metrics.
        """,
        missing="""
        A window without GPU memory utilisation is skipped, and so are the windows until there are
        data points enough. Samples that are no finite numbers are left out.
        """,
        remedy="""
        - Look for tensors that are kept from step to step with their graph: `loss` instead of
          `loss.item()` in a running sum, hidden states that are not detached.
        - Validation without `torch.no_grad()`.
        - Batches of very different length: sort or bucket them.
        - A jump at a known time, such as the first evaluation, is no leak: raise `patience`.
        """,
        limits="""
        A slow leak is never seen with the defaults: set `slow`, and `window` to some minutes of
        data points. Frameworks that reserve memory as they like show their reserve, not what is in
        use. GPUMemoryUtilization is, on some platforms, the share of time in which memory is
        accessed.
        """,
    )
    REPORTED = ("increase", "patience", "window")
    increase: float
    patience: int
    window: int
    slow: bool

    def __init__(
        self,
        base_trial: Any,
        increase: Any = 5,
        patience: Any = 1000,
        window: Any = 10,
        scan_interval_us: Any = MINUTE_US,
        slow: Any = False,
    ) -> None:
        super().__init__(
            base_trial,
            increase=increase,
            patience=patience,
            window=window,
            scan_interval_us=scan_interval_us,
            slow=slow,
        )
        # As many as GPUs; see `Series` for what each costs.
        self._gpus: dict[Device, Series] = {}
        self._largest: dict[Device, float] = {}
        self._begun = 0

    def judge(self, step: int) -> bool:
        """Say whether the memory use of some GPU has risen too far in the window."""
        gpus = by_device(self.samples(step), GPU_MEMORY)
        self._begun = self.window_of(step)[0]
        before = {gpu: self._gpus[gpu].newest for gpu in gpus if gpu in self._gpus}
        seen = {gpu: self._gpus[gpu].count for gpu in before}
        extend_all(self._gpus, gpus, lambda: Series(2 * self.window))
        self.has_seen(max((one.count for one in self._gpus.values()), default=0))
        if not gpus:
            return self.not_judged(NO_MEMORY)
        rises = {
            gpu: self._rises(before.get(gpu, np.empty(0)), values, seen.get(gpu, 0))
            for gpu, values in gpus.items()
        }
        ready = {gpu: rise for gpu, rise in rises.items() if len(rise)}
        if not ready:
            return self.not_judged(TOO_FEW)
        met = [self._judge_gpu(step, gpu, rise) for gpu, rise in ready.items()]
        return any(met)

    def _rises(self, before: Floats, values: Floats, seen: int) -> Floats:
        """Return the rise at each new value that is judged.

        Parameters
        ----------
        before
            The newest values before, ``2 * window`` at most.
        seen
            How many values there were before.
        """
        first = max(self.patience, self.window + 1) - seen  # of the new values
        joined = np.concatenate((before, values))
        at = np.arange(len(before) + max(first, 0), len(joined))
        rises = (joined[at] - joined[at - self.window]) / self.window
        if self.slow:
            sums = np.concatenate(([0.0], np.cumsum(joined)))
            late = at >= 2 * self.window - 1
            ends = at[late] + 1
            gained = sums[ends] - 2 * sums[ends - self.window] + sums[ends - 2 * self.window]
            rises[late] = np.maximum(rises[late], gained / self.window)
        return rises

    def _judge_gpu(self, step: int, gpu: Device, rises: Floats) -> bool:
        node, name = gpu
        largest = float(rises.max())
        self._largest[gpu] = max(largest, self._largest.get(gpu, largest))
        violations = int(np.count_nonzero(rises > self.increase))
        self.violated(violations, violations)
        used = self._gpus[gpu].newest[-1]
        return self.measured(
            step,
            RISE,
            largest,
            self.increase,
            met=violations > 0,
            tensor=name,
            worker=node,
            note=f"At {violations} data points; memory use is at {used:.3g} percent.",
        )

    def details(self) -> dict[str, Any]:
        """Return the largest rise, and percentiles of all values, by node and GPU."""
        found: dict[str, Any] = {}
        for gpu, series in self._gpus.items():
            found.setdefault(gpu.node, {})[gpu.name] = {
                "increase": self._largest.get(gpu, 0.0),
                "gpu_max": series.largest,
                **{
                    name.replace("p5", "p05"): p
                    for name, p in percentiles(series.values, (5,)).items()
                },
                **series.box(),
            }
        return {**found, "last_timestamp": self._begun}
