"""Runs that were the fifth held-out part until they were judged; rules have been mended since."""
