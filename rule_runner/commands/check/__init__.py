"""check: judge every trial at and below a path."""
