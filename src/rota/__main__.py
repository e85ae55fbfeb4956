"""Entry point of `python -m rota`, the same as `rota`."""

from rota.cli import main

if __name__ == "__main__":
    main()
