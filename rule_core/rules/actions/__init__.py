"""What is done when a rule's condition is met."""
