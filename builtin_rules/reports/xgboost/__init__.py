"""The report of CreateXgboostReport: a self-contained page, and its numbers as JSON."""
