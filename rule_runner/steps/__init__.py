"""Which steps or windows of a trial are ready to be judged."""
