"""Saves a training job's tensors as a trial: hooks, their configuration and writers."""
