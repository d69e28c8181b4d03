"""Framework timelines: trace events as files, records and merged timelines."""
