"""What healthy trainings of several kinds share: loops, data, worlds and layers of experts."""
