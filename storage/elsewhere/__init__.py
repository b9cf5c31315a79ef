"""What lies in a bucket or a shared folder: stores, a team's place, Delta tables."""
