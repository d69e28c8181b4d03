"""LossScaling: the loss scale of automatic mixed precision at a step."""

import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from rule_core.frameworks.pytorch.patches import Patch, Watcher


class LossScaling(Watcher):
    """Detects scaled losses, so that gradients can be saved unscaled.

    It patches `torch.amp.GradScaler.scale` and `update`, because scalers cannot be found
    otherwise. Scalers of other classes can be passed to `use`.

    Parameters
    ----------
    before_update
        Called with a scaler before it adapts its scale.
    """

    def __init__(self, before_update: Callable[[Any], object]) -> None:
        self._in_use: Any = None
        self._registered: Any = None
        self._inverse: float | None = None
        self._before_update = before_update

    def use(self, scaler: Any) -> None:
        """Use a scaler of any class with `get_scale` at every step."""
        self._registered = scaler

    def begin_step(self) -> None:
        """Reset the scaler of the previous step."""
        self._in_use = self._inverse = None

    @property
    def scaler(self) -> Any:
        """The scaler of this step, or None."""
        return self._in_use or self._registered

    def scale(self) -> Any:
        """Return the scale as a tensor on its device or as a number; None without scaling."""
        scaler = self.scaler
        scale = getattr(scaler, "_scale", None)  # `get_scale` would wait for the device
        if isinstance(scale, torch.Tensor):
            return scale.clone().reshape(())
        return None if scaler is None else float(scaler.get_scale())

    def inverse(self) -> float:
        """Return the factor that unscales gradients of this step; 1.0 without scaling."""
        if self._inverse is None:
            # Read once per backward: the scale may be on another device.
            scaler = self.scaler
            scale = 1.0 if scaler is None else float(scaler.get_scale())
            self._inverse = 1.0 / scale if scale else 1.0
        return self._inverse

    def record_scaler(self, scaler: Any) -> None:
        """Record that a loss was scaled."""
        self._in_use, self._inverse = scaler, None

    def record_update(self, scaler: Any) -> None:
        """Record that a scaler is about to adapt its scale."""
        self._before_update(scaler)

    @classmethod
    def call_all(cls, record: Callable[["LossScaling", Any], None], scaler: Any) -> None:
        """Call a method of all instances that watch."""
        for watcher in [*cls._watching]:
            record(watcher, scaler)

    @classmethod
    def patched(cls) -> Iterator[Patch]:
        """Patch the methods of `torch.amp.GradScaler`."""
        for name, record in (("scale", cls.record_scaler), ("update", cls.record_update)):
            yield Patch(torch.amp.GradScaler, name, functools.partial(_calling_first, record))


def _calling_first(record: Callable[[LossScaling, Any], None], original: Any) -> Any:
    """Return a method of a scaler that first calls each instance that watches."""

    def method(scaler: Any, *args: Any, **kwargs: Any) -> Any:
        if scaler.is_enabled():
            LossScaling.call_all(record, scaler)
        return original(scaler, *args, **kwargs)

    return method
