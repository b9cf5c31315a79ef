"""Operations by which a person changes what is remembered."""
