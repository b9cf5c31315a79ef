"""Over HTTP: the server, and who may ask it for what."""
