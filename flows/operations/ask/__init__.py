"""Operations that answer questions and change nothing a person said."""
