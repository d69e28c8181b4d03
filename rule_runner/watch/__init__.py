"""watch: finds trials below its roots, judges each in a process of its own, and keeps an index."""
