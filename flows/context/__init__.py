"""What every operation is given, and how a run's course is noted."""
