"""Issues of a run: which belong together, and what people said about them."""
