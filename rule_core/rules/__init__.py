"""Rules: small classes that evaluate one step of a trial at a time."""
