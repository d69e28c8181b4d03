"""The report on a profiled job: its data, and the page, notebook and JSON files it writes."""
