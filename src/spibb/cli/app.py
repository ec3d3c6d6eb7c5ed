"""The command line: its commands, and how it ends."""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from itertools import pairwise
from typing import Annotated, Any, NoReturn

import typer

from spibb import __version__
from spibb.cli.commands.act import act
from spibb.cli.commands.claims import claims
from spibb.cli.commands.compare import compare
from spibb.cli.commands.demo import demo
from spibb.cli.commands.evaluate import evaluate
from spibb.cli.commands.experiment import experiment
from spibb.cli.commands.export import export
from spibb.cli.commands.figures import figures
from spibb.cli.commands.improve import improve
from spibb.cli.commands.inspect import inspect
from spibb.cli.commands.monitor import monitor
from spibb.cli.commands.split import split
from spibb.cli.secrets import hide_passwords, without_passwords
from spibb.cli.stopping import Stopped, stoppable
from spibb.errors import InputError
from spibb.files import is_full

app = typer.Typer(
    help="Improve a decision policy from its own log, without making it worse.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help starts twice as fast
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(short_help="Start here: a simulated log, improved and compared with the truth.")(demo)
app.command(short_help="Improve a policy from its own log.")(improve)
app.command(short_help="Estimate what a policy would earn, from a log.")(evaluate)
app.command(short_help="Split a log into two files of whole episodes.")(split)
app.command(short_help="After deployment: is the new policy worse?")(monitor)
app.command(short_help="Look at a log: is it good enough?")(inspect)
app.command(short_help="Show what a policy does in a state, or decide a file of cases.")(act)
app.command(short_help="Write a policy as one file, SQL, rules or a tree.")(export)
app.command(short_help="Show where two policies differ, and which is better.")(compare)
app.command(short_help="Repeat a study of the paper; continues if stopped.")(experiment)
app.command(short_help="Draw the paper's figures from the rows of a study.")(figures)
app.command(short_help="Check the paper's claims against the rows of studies.")(claims)


USAGE: Any = next(k for k in typer.BadParameter.__mro__ if k.__name__ == "ClickException")
"""What a wrong command line raises; Typer brings its own copy of Click."""


BROKEN_PIPE, FAULT = 141, 70
"""Exit codes of a pipe that nobody reads, as shells have it, and of a fault of ours: 1 is the alarm
of `spibb monitor`, and must mean nothing else."""
LONGEST = 500
"""Characters of a message; a hostile file may have column names of any length."""


def main() -> None:
    """Run the command line; bad input ends in one line and exit code 2, never a traceback.

    So does a full disk. A signal ends in one line and its own exit code. Unless the environment
    says otherwise, NumPy computes in one thread: waiting for each other takes threads longer than
    the products of small matrices, and studies have a process per core.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    hide_passwords()
    try:
        with stoppable():
            code = _answer()
            sys.stdout.flush()
        sys.exit(code)
    except Stopped as stop:
        _refuse(str(stop), stop.code)
    except InputError as error:
        _refuse(str(error))
    except USAGE as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            sys.exit(2)
        context = getattr(error, "ctx", None)
        command = context.command_path if context else "spibb"
        _refuse(f"{error.format_message().rstrip('.')}{_given(error)} (see {command} --help)")
    except MemoryError:
        _refuse("there is not enough memory: ask for less, or use fewer states and actions")
    except BrokenPipeError:  # as in `spibb inspect log.csv | head`
        _discard_output()
        sys.exit(BROKEN_PIPE)
    except OSError as error:
        _discard_output()
        remedy = "free some space" if is_full(error) else "check file and disk"
        _refuse(f"{error.strerror or error} ({error.filename or 'no file'}): {remedy}")
    except Exception:
        traceback.print_exc()
        sys.exit(FAULT)


def _answer() -> Any:
    """The exit code of the command; Rich ends the process where nobody reads a pipe."""
    try:
        return app(standalone_mode=False, prog_name="spibb")
    except Stopped:
        raise
    except SystemExit as end:
        raise BrokenPipeError from end


def _refuse(message: str, code: Any = 2) -> NoReturn:
    line = " ".join(without_passwords(message).split())
    if len(line) > LONGEST:
        line = f"{line[: LONGEST // 2]} … {line[-LONGEST // 2 :]}"
    with contextlib.suppress(OSError):  # the code says it too
        print("spibb:", line, file=sys.stderr)
    sys.exit(code)


def _given(error: Any) -> str:
    """The value of the option that was refused, where Typer's message lacks it."""
    names = getattr(getattr(error, "param", None), "opts", ())
    words = [part for word in sys.argv[1:] for part in word.split("=", 1)]
    values = [value for name, value in pairwise(words) if name in names]
    return f", not {values[-1]!r}" if values else ""


def _discard_output() -> None:
    """Drop what could not be printed; Python would try again at the end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _version(wanted: bool) -> None:
    if wanted:
        print(f"spibb {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass
