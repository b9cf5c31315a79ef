"""What Cortex uses of this machine besides the store: schedulers, programs, keys, servers."""
