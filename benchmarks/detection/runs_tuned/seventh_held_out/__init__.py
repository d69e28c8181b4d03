"""Runs that were the seventh held-out part until they were judged; rules have been mended since."""
