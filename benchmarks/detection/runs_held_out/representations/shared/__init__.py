"""What these runs share: loops, data, networks, worlds and consequences."""
