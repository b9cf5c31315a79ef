"""What a language model is asked, and what of its answer is believed: requests, prompts, checks, events."""
