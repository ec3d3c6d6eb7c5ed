"""`python -m spibb` is `spibb`."""

from spibb.cli import main

if __name__ == "__main__":
    main()
