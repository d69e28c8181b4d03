"""A folder for PYTHONPATH: `rule-runner train` puts it before a training script's own modules."""
