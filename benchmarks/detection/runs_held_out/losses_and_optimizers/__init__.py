"""Losses, gradients, rates, restarts and ends: a piece of the eighth held-out part."""
