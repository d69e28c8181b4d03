"""Rules over inputs, labels, predictions and trees."""
