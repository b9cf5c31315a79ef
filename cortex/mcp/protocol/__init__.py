"""The protocol: requests, arguments, replies, listings and the client behind them."""
