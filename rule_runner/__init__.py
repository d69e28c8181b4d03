"""The service: evaluates rules over the steps of a trial and tells the world what it found."""
