"""What lies in a bucket or a shared folder: stores and a team's place."""
