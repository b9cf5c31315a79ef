"""The store at another time or beside the live one: as of a day, rebuilt, compared, derived again."""
