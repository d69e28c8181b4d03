"""Hugging Face transformers: the callback that saves a training's tensors."""

from smdebug.transformers.callback import DebuggerCallback

__all__ = ["DebuggerCallback"]
