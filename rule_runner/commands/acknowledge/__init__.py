"""acknowledge: record that somebody has seen or muted findings."""
