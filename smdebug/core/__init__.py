"""Collections, configurations, the hook and the writer of a trial."""
