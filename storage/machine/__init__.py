"""What Cortex uses of this machine beside the store: schedulers, programs, keys, servers."""
