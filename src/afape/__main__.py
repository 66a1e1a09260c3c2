"""``python -m afape``, the same as the command ``afape``."""

from .commands.main import main

if __name__ == "__main__":
    main()
