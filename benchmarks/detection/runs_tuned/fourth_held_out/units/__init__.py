"""Units, weights and gradients: healthy plain networks, and those in which signals fail."""
