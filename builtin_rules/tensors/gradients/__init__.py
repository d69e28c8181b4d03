"""Rules over gradients and other tensors of a training."""
