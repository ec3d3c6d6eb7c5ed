"""The paper beside our rows: figures, claims and galleries of the studies."""
