"""Policy tables and samples, as package data."""
