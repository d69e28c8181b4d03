"""Keras 3: the hook, and what it saves automatically."""
