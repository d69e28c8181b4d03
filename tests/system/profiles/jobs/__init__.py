"""Jobs by what is wrong with them."""
