"""The `fitmart` command: one module a subcommand, imported only when it is called."""

import importlib
import sys

import click

from fitmart.estimator.errors import FitmartError

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
        sys.exit(cli.main(argv, prog_name="fitmart", standalone_mode=False) or 0)
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
        click.echo(f"fitmart: {error}", err=True)
        sys.exit(1)
