"""What every rule of extraction stands on: candidates, statements, word lists, languages."""
