"""Trials in S3: requests below a prefix, stores and outputs, and a cache on disk."""
