"""Pages: HTML from templates, static files, and the curves of trials."""
