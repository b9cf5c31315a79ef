"""The explorer: a local web page over the store, started by hand and gone when it is closed."""
