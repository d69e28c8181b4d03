"""Units: activations, weights and their updates, in trainings of tables, pictures and series."""
