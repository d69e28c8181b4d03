"""Statistics of losses: which one is the objective, its phases, and the state it is in."""
