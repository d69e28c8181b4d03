"""What runs of representations share: loops, data, networks and consequences."""
