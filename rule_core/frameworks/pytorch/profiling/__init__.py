"""What is recorded of a PyTorch training for its profile."""
