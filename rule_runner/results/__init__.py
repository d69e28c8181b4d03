"""Results: status, result files and the output folder."""
