"""One module per command; `spibb.cli.app` lists them."""
