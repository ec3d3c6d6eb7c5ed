"""Missing values, duplicate rows and bandit logs: the choices a user has."""

from __future__ import annotations

from dataclasses import dataclass

from spibb import checks
from spibb.errors import InputError

ERROR, DROP, AS_LEVEL = "error", "drop", "as-level"
MISSING = (ERROR, AS_LEVEL, DROP)
DUPLICATES = (ERROR, DROP)
MISSING_LABEL = "(missing)"
"""The label of a missing value that is a level of its own."""
WORDS = ("", "na", "n/a", "nan", "null", "none", "nil", "-", "?")
"""Texts that stand for a missing value where a number, a time or a flag is wanted."""


@dataclass(frozen=True)
class Handling:
    """How a table is read where it is not a clean log of episodes.

    Parameters:
        bandit: every row is an episode of one step that ends; there are no columns of episodes.
        missing: ``"error"`` refuses a missing value; ``"drop"`` leaves out the episodes that have
            one; ``"as-level"`` makes it a label of its own, ``(missing)``, in states and actions.
        duplicates: ``"error"`` refuses a step that occurs twice in its episode; ``"drop"`` keeps
            one of rows that are equal in all columns that are used.
    """

    bandit: bool = False
    missing: str = ERROR
    duplicates: str = ERROR

    def __post_init__(self) -> None:
        checks.flag("bandit", self.bandit)
        checks.choice("missing", self.missing, MISSING)
        checks.choice("duplicates", self.duplicates, DUPLICATES)
        if self.bandit and self.duplicates == DROP:
            raise InputError(
                "duplicates='drop' cannot be combined with bandit: two equal rows are two "
                "decisions there; leave duplicates out, and remove copies beforehand"
            )

    @property
    def options(self) -> str:
        """The same as options of the command line."""
        return self.options_from(STRICT)

    def options_from(self, other: Handling) -> str:
        """The options that change `other` into this."""
        mine = {"--bandit": self.bandit, f"--missing {self.missing}": self.missing,
                f"--duplicates {self.duplicates}": self.duplicates}  # fmt: skip
        theirs = other.bandit, other.missing, other.duplicates
        changed = (option for (option, value), old in zip(mine.items(), theirs) if value != old)
        return " ".join(changed)


STRICT = Handling()
"""Every value must be there, and every step once."""
