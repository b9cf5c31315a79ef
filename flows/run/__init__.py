"""One run: what its stages read, what was made from which inputs, what is published of it."""
