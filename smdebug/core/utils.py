"""setup_profiler_report: what the notebooks of profiler reports import."""

__all__ = ["setup_profiler_report"]


def setup_profiler_report(processing_job_arn: str, opt_out: bool = False) -> None:
    """Do nothing; smdebug tells AWS that a notebook of a profiler report was opened."""
