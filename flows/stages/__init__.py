"""The stages of a run, a file each; `order` has the lists that flows run."""
