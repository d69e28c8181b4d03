"""PT_dataloader_analysis: how long PyTorch's data loaders took, and when much longer than usual."""

from rule_core.analysis.frames.pytorch_dataloader_analysis import PT_dataloader_analysis

__all__ = ["PT_dataloader_analysis"]
