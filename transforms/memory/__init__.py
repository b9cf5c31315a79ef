"""Memory: what events and journal become, how memories age, link, merge and are forgotten."""
