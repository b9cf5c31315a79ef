"""Providers of embeddings, each behind the same small protocol."""
