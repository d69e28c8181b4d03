"""Rules over the outputs of activation functions."""
