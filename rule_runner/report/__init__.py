"""Reports: results of rule jobs as text, JUnit, SARIF and HTML with charts."""

from rule_runner.report.html.page import write_report

__all__ = ["write_report"]
