"""What to evaluate: requests and where they come from."""
