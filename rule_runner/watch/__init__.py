"""watch: finds trials below its roots, judges each in a separate process, and keeps an index."""
