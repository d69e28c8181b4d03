"""Commands that show rules, trials and results."""
