"""Operations that carry memories to colleagues, to files and back."""
