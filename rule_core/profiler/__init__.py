"""The profiler's files: system metrics, framework timelines and Python profiles of a job."""
