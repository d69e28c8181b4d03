"""Pages: HTML from templates, and static files."""
