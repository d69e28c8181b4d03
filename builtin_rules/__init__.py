"""The built-in rules, one file each, and the table of them."""
