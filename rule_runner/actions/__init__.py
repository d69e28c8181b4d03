"""Actions of rule jobs: which there are, and how the runner carries them out."""
