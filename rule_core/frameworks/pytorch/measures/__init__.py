"""What is measured of the modules, the batches and the losses of a PyTorch training."""
