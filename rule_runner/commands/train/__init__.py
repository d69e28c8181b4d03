"""train: run a training script and evaluate what it saves."""
