"""Operations that set up, feed, check and measure a store."""
