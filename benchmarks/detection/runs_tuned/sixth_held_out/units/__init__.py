"""Trainings of single units: activations, gradients, weights and updates."""
