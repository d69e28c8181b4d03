"""What the trainings share: texts, shapes, worlds, networks, and loops."""
