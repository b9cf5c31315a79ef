"""Brief: which memories a new session is given, and how they read."""
