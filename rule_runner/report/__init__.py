"""Reports: results of rule jobs as a page that people read, with charts."""

from rule_runner.report.page import write_report

__all__ = ["write_report"]
