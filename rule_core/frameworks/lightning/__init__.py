"""Lightning: the callback that saves a training's tensors."""
