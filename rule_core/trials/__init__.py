"""Trials: queries over the tensors that a training job saved."""
