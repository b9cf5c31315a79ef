"""A store elsewhere: a bucket holds the truth, a machine works on a copy and commits to the bucket's log."""
