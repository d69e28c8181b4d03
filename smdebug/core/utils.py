"""setup_profiler_report: what the notebooks of profiler reports import."""

from rule_core.absent_names import setup_profiler_report as setup_profiler_report
