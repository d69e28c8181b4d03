"""Runs that were the held-out part until they were judged; rules have been mended since."""
