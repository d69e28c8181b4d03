"""The built-in rules that judge the steps of a trial, one file each."""
