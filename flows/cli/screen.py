"""What `refresh` and `build` say: a progress bar on a terminal, then one screen of where everything came from."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import TracebackType

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from fitmart.flows.build import BuildReport
from fitmart.flows.reach import NO_NETWORK
from fitmart.flows.refresh import RefreshReport
from fitmart.flows.sources.contract import SourceRun
from fitmart.warehouse.connection import CATALOG, connect

# Three questions to begin with; the README has more.
QUERIES = (
    "SELECT * FROM smallest_gpus('Qwen/Qwen2.5-72B-Instruct', 8192)",
    "SELECT * FROM users_per_gpu('meta-llama/Llama-3.1-8B-Instruct', 8192) LIMIT 10",
    "SELECT * FROM cheapest_offers('nvidia-h100-sxm', gpus := 8) LIMIT 5",
)
SHOWN_TABLES = ("model", "gpu", "offer", "api_price", "footprint", "kv_cache", "capacity", "fit", "speed", "cost")


class BuildProgress:
    """Called with (groups done, of how many): a bar on a terminal, a line at each quarter elsewhere."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._quarter = 0
        if sys.stderr.isatty():
            columns = TextColumn("Computing marts"), BarColumn(), TimeElapsedColumn()
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("marts", total=None)

    def __enter__(self) -> "BuildProgress":
        if self._bar:
            self._bar.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, tb: TracebackType | None) -> None:
        if self._bar:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        if self._bar:
            self._bar.update(self._task, completed=done, total=total)
        elif total and done * 4 // total > self._quarter:
            self._quarter = done * 4 // total
            click.echo(f"Computing marts: {done} of {total} groups of models")


def say_build(report: BuildReport, data_dir: Path) -> None:
    """What a build did, and the rows it holds."""
    if report.build_id is None:
        click.echo(f"Nothing has changed: {data_dir / CATALOG} stays as it is ({report.seconds:.1f} s).")
        return
    with closing(connect(data_dir)) as con:
        rows = con.execute("SELECT unnest(map_keys(row_counts)), unnest(map_values(row_counts)) FROM build").fetchall()
    counts = dict(rows)
    table = Table(box=None, pad_edge=False)
    table.add_column("table")
    table.add_column("rows", justify="right")
    for name in SHOWN_TABLES:
        table.add_row(name, f"{counts.get(name, 0):,}")
    _console().print(table)
    size = (data_dir / CATALOG).stat().st_size / 1e6
    rejected = f"; {report.rejected_count:,} rows rejected (see the table rejected)" if report.rejected_count else ""
    click.echo(f"\n{data_dir / CATALOG}: {size:,.0f} MB, published after {report.seconds:.0f} s{rejected}.")


def say_refresh(report: RefreshReport, data_dir: Path) -> int:
    """One screen: every source with its age, the rows, and queries to paste. Returns how many sources are stale."""
    table = Table(box=None, pad_edge=False)
    for name in ("source", "this run", "newest row", "rows"):
        table.add_column(name, justify="right" if name == "rows" else "left")
    rows, stale = _source_lines(report, data_dir)
    for row in rows:
        table.add_row(*row)
    _console().print(table)
    click.echo()
    for line in _remarks(report.runs):
        click.echo(line)
    say_build(report.build, data_dir)
    click.echo("\nAsk, for instance:")
    for query in QUERIES:
        click.echo(f'  fitmart query "{query}"')
    return stale


def _remarks(runs: Sequence[SourceRun]) -> Iterator[str]:
    """What went wrong, a line a source; sources that no network led to in one line."""
    unreached = [run.source_id for run in runs if run.status == "failed" and run.reason.endswith(NO_NETWORK)]
    if unreached:
        yield f"No network: {', '.join(unreached)}. What they sent last, or the bundled snapshot, serves."
    for run in runs:
        if run.reason and run.status != "skipped" and run.source_id not in unreached:
            yield f"{run.source_id} {run.status}: {run.reason}"


def _source_lines(report: RefreshReport, data_dir: Path) -> tuple[list[tuple[str, str, str, str]], int]:
    """One line a source of models and prices: this run's outcome, the newest row it serves, how many rows."""
    with closing(connect(data_dir)) as con:
        served = con.execute(
            """
            SELECT source_id, max(observed_at), count(*), bool_and(coalesce(is_stale, false))
            FROM (
                SELECT source_id, observed_at, is_stale FROM offer
                UNION ALL SELECT source_id, observed_at, is_stale FROM api_price
                UNION ALL SELECT source_id, observed_at, false FROM model
            )
            GROUP BY source_id
            """
        ).fetchall()
    ages = {str(source): (f"{newest:%Y-%m-%d %H:%M}", f"{count:,}", stale) for source, newest, count, stale in served}
    lines = []
    for run in report.runs:
        newest, count, _ = ages.pop(run.source_id, ("–", "–", False))
        why = f": {run.reason}" if run.status == "skipped" else ""
        lines.append((run.source_id, f"{run.status}{why}", newest, count))
    others = [(source, "bundled", newest, count) for source, (newest, count, _) in sorted(ages.items())]
    stale = sum(bool(is_stale) for _, _, _, is_stale in served)
    return lines + others, stale


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else 140)
