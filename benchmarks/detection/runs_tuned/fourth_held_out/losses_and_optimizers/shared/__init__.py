"""What runs about losses and optimizers share: lessons, networks, loops and consequences."""
