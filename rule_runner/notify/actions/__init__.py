"""Actions of rule jobs, and the runner that carries them out."""
