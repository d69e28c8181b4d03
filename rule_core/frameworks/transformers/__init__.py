"""Hugging Face Transformers: the callback that saves a training's tensors."""
