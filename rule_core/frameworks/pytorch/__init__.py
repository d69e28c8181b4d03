"""PyTorch: the hook, and what it saves automatically."""
