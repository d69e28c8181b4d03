"""Generative, contrastive and reinforcement learning."""
