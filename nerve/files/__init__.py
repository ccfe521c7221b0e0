"""The one place where a path from outside becomes an open file: below a directory, through no link (``beneath``)."""
