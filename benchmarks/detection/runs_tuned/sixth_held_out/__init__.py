"""Runs that were the sixth held-out part until they were judged; rules have been mended since."""
