"""Text work that hooks and engine share: whose words, which characters, what is a tag."""
