"""KerasHook: saves tensors of a Keras 3 model during fit, evaluate and predict."""
