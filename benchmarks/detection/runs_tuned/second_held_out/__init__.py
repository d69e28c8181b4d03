"""Runs that were the second held-out part until they were judged; rules have been mended since."""
