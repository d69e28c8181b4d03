"""PT_dataloader_analysis: times and outliers of PyTorch's data loaders."""

from rule_core.analysis.frames.pytorch_dataloader_analysis import (
    PT_dataloader_analysis as PT_dataloader_analysis,
)
