"""Trainings whose losses, gradients, rates, scales, restarts and workers are judged."""
