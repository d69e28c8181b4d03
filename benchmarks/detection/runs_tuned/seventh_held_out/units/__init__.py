"""Trainings that are judged unit by unit: activations, gradients, weights and updates."""
