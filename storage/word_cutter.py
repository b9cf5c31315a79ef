"""Cuts text into the words that the search index counts: lower case, without accents, without endings."""

import sqlite3
from collections.abc import Sequence

# SQLite's own cutter, as of the index that the hook reads; of a table in memory that keeps no text.
_TEXTS = (
    "create virtual table cut using fts5(words, content='', tokenize='porter unicode61 remove_diacritics 2')"
)
_WORDS = "create virtual table instances using fts5vocab(cut, instance)"
_COUNTS = "select term, doc, count(*) from instances group by term, doc order by term, doc"
# A longer one is a hash or a picture: nobody asks for it.
LONGEST_WORD = 64

# Word, number of the text, how often it stands there.
WordCount = tuple[str, int, int]


def count_words(texts: Sequence[str]) -> list[WordCount]:
    """Return how often each word stands in each text, by word, then by the text's number from 0."""
    if not texts:
        return []
    database = sqlite3.connect(":memory:", isolation_level=None)
    try:
        database.execute(_TEXTS)
        database.execute(_WORDS)
        database.execute("begin")
        database.executemany("insert into cut(rowid, words) values (?, ?)", enumerate(texts))
        database.execute("commit")
        return [row for row in database.execute(_COUNTS) if len(row[0]) <= LONGEST_WORD]
    finally:
        database.close()
