"""Rules that write a report: on XGBoost trainings and on profiler data."""
