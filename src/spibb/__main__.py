"""`python -m spibb` is `spibb`."""

from spibb.cli.app import main

if __name__ == "__main__":
    main()
