"""Requests to a language model under the budget, and the replies that are kept."""
