"""The `fitmart` command: one module a subcommand, imported only when it is called."""

import importlib
import os
import sys
from contextlib import suppress
from typing import NoReturn

import click

from fitmart.estimator.errors import FitmartError

TRACEBACK = "FITMART_TRACEBACK"  # an environment variable for those who mend the program
# name -> one line of help, so that `fitmart --help` imports nothing heavy.
COMMANDS = {
    "refresh": "Harvest, build, check and publish the catalog.",
    "build": "Build the catalog again from what has landed and the bundled snapshot, without network.",
    "query": "Ask the catalog in SQL (read-only).",
    "export": "Write the tables as Parquet or CSV for BI tools.",
    "estimate": "Estimate one model, or a file of scenarios.",
    "plan": "Find the cheapest configurations that hold a workload.",
    "explain": "Show one estimate line by line, with formulas and sources.",
    "gpu-names": "Resolve raw GPU names to gpu_id.",
    "status": "Say what the catalog holds, how old it is and what failed.",
    "rollback": "Switch back to the build published before.",
    "diff": "Say what has changed since a day: cheaper offers, new models, stale sources.",
    "compact": "Merge what has landed into one file a source and month.",
    "serve": "Refresh prices hourly and models daily, as Prefect deployments.",
    "seeds": "Rebuild the bundled snapshot from what has landed.",
    "page": "Write the static page of a model (not built yet).",
    "site": "Write the static pages of all models (not built yet).",
}


class LazyGroup(click.Group):
    """A group whose subcommands live in modules of this package, `gpu-names` in gpu_names.py."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"fitmart.flows.cli.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="fitmart")
def cli() -> None:
    """Which GPU, how many, at which precision and context, for how many users, how fast, at what price."""


def main(argv: list[str] | None = None) -> None:
    """Run the command line: 0 done, 1 failed (one line on stderr), 2 wrong use, 3 done with stale or failed sources."""
    try:
        code = cli.main(argv, prog_name="fitmart", standalone_mode=False) or 0
        sys.stdout.flush()
        sys.exit(code)
    except click.exceptions.Exit as stop:
        sys.exit(stop.exit_code)
    except click.Abort:
        sys.exit(130)
    except click.UsageError as error:
        error.show()
        sys.exit(2)
    except click.ClickException as error:
        error.show()
        sys.exit(1)
    except FitmartError as error:
        _fail(str(error))
    except BrokenPipeError:  # who reads the output has read enough
        _drop_output()
        sys.exit(0)
    except OSError as error:
        _drop_output()
        _fail(": ".join(str(part) for part in (error.filename, error.strerror or error) if part))
    except Exception as error:
        if _was_interrupted(error):
            sys.exit(130)
        if os.environ.get(TRACEBACK):
            raise
        reason = " ".join(str(error).split())[:300]
        _fail(f"a fault of fitmart itself: {type(error).__name__}: {reason} ({TRACEBACK}=1 shows where)")


def _fail(line: str) -> NoReturn:
    click.echo(f"fitmart: {line}", err=True)
    sys.exit(1)


def _drop_output() -> None:
    """Forget what is buffered for standard output, which the interpreter would try to write once more at its end."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _was_interrupted(error: BaseException) -> bool:
    """Whether Ctrl-C is behind it: libraries turn the interrupt into errors of their own."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, KeyboardInterrupt):
            return True
        cause = cause.__cause__ or cause.__context__
    return False
