"""trial export: writes the values of a trial in another format."""
