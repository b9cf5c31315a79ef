"""The store at another time or in another place: as of a day, rebuilt, compared, derived again."""
