"""Which project a folder belongs to, and what its git repository holds."""
