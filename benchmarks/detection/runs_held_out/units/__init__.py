"""Units, weights and updates of ordinary supervised networks: the eighth held-out part."""
