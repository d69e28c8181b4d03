"""Runs of MLflow: in a folder ``mlruns``, in a SQLite database or on a tracking server."""
