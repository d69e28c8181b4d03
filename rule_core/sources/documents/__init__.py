"""Runs that are written as whole files: histories in JSON, YAML, NumPy and Parquet, notebooks."""
