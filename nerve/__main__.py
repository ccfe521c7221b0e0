"""``python -m nerve``: the same as the program ``nerve``."""

from nerve.cli import main

if __name__ == "__main__":
    main()
