"""KerasHook: saves what a Keras 3 model computes while it is fitted, evaluated and asked."""
