"""Words: sentences, word rules, overlap and token counts that the other rooms share."""
