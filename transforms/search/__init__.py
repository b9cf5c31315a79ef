"""Search: the text that is indexed and how several lists of results become one."""
