"""doctor: diagnoses installations and trials."""
