"""Storage of trials: local folders, S3 and memory."""
