"""Statistics of one series of numbers, in bounded memory."""
