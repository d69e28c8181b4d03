"""What CreateXgboostReport writes: a page that needs nothing else, and its numbers as JSON."""
