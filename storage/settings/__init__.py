"""What the user chose, and the policy tables."""
