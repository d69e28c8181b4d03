"""get_logger: the logger of rules, configured by the application."""

from rule_core.logger import get_logger as get_logger
