"""What these runs share: a loop, data, networks, worlds and consequences."""
