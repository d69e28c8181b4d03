"""Lightning: the callback that saves a training's tensors, as `smdebug.lightning`."""

from smdebug.lightning.callback import DebuggerCallback

__all__ = ["DebuggerCallback"]
