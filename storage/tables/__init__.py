"""The tables of each scope and the search index, made from the lake."""
