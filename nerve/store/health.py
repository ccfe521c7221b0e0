"""Looking for damage.  Linear in the size of the file: for ``Database.read_large``, never on the start path."""

import apsw

_PROBLEMS = 100


def quick_check(db: apsw.Connection) -> list[str]:
    """What is wrong with the structure, or else with the references, at most 100 sentences; empty if sound.

    Reports and decides nothing.  StoreCorrupt (through ``read_large``) if the file cannot even be walked.
    """
    found = [line for (text,) in db.execute(f"PRAGMA quick_check({_PROBLEMS})") for line in text.splitlines()]
    if problems := [line for line in found if line != "ok" and not line.startswith("***")]:
        return problems[:_PROBLEMS]
    for table, row, parent, _ in db.execute("PRAGMA foreign_key_check"):
        problems.append(f"row {row} of {table} refers to a missing row of {parent}")
        if len(problems) == _PROBLEMS:
            break
    return problems
