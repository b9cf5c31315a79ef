"""Imperative shell: which stages run, in which order, under which engine."""
