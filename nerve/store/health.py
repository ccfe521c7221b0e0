"""Looking for damage.  Linear in the size of the file: for ``Database.read_large``, never on the start path."""

import apsw

_PROBLEMS = 100


def quick_check(db: apsw.Connection) -> list[str]:
    """What is wrong with the database, at most 100 sentences each for structure and references; empty if sound.

    Reports and decides nothing.  Raises apsw.CorruptError, and so StoreCorrupt, if the file cannot even be walked.
    """
    structure = [text for (text,) in db.execute(f"PRAGMA quick_check({_PROBLEMS})") if text != "ok"]
    references: list[str] = []
    for table, row, parent, _ in db.execute("PRAGMA foreign_key_check"):
        references.append(f"row {row} of {table} refers to a missing row of {parent}")
        if len(references) == _PROBLEMS:
            break
    return structure + references
