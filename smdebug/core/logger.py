"""get_logger: the logger that rules write to; whoever runs them configures it."""

from rule_core.logger import get_logger

__all__ = ["get_logger"]
