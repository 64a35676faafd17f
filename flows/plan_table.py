"""A plan for people: what holds the workload, what nearly does, and what an API would take."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from fitmart.estimator.plan import Plan, Workload
from fitmart.estimator.units import GIB


def to_tables(plan: Plan, workload: Workload, api: Mapping[str, Any] | None, launches: list[dict[str, str]]) -> Group:
    """Both tables and the lines between them."""
    asked = (
        f"{workload.users} users at once, {workload.context_tokens:,} tokens each; requests of "
        f"{workload.input_tokens:,} tokens in and {workload.output_tokens:,} out, "
        f"at least {workload.min_user_tokens_per_s:g} tokens/s each"
    )
    parts: list[Table | Text] = [Text(asked)]
    if plan.configurations.is_empty():
        parts.append(Text("Nothing in the catalog holds this."))
    else:
        parts.append(_configurations(plan, workload))
    if not plan.near_misses.is_empty():
        parts.append(_near_misses(plan))
    if api is not None:
        parts.append(
            Text(
                f"Cheapest API: {api['provider_id']}, {api['usd_per_mtok_blended']:.3g} USD for a million tokens "
                "(3 of prompt : 1 of answer)",
                style="dim",
            )
        )
    if launches and "command" in launches[0]:
        parts += [Text("The cheapest is started by", style="dim"), Text(launches[0]["command"], overflow="fold")]
    return Group(*parts)


def _configurations(plan: Plan, workload: Workload) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("GPUs", "precision"):
        table.add_column(name, no_wrap=True)
    for name in ("USD\na month", "users\nfit", "free\nGiB", "tokens/s\na user", "TTFT\nms", "USD/Mtok\nout"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("offer")
    has_api = plan.configurations["break_even_tokens_per_day"].null_count() < plan.configurations.height
    if has_api:
        table.add_column("beats the API\nabove tokens/day", justify="right", no_wrap=True)
    for row in plan.configurations.iter_rows(named=True):
        cells = [
            _gpus(row),
            row["precision_id"],
            f"{row['usd_per_month']:,.0f}",
            "–" if row["users"] is None else f"{row['users']:,}",
            f"{row['headroom_bytes'] / GIB:,.1f}",
            _band(row, "decode_tokens_per_s", "{:,.0f}"),
            _band(row, "ttft_ms", "{:,.0f}"),
            f"{row['usd_per_mtok']:,.2f}",
            _offer(row),
        ]
        if has_api:
            cells.append(_break_even(row, workload))
        table.add_row(*cells)
    return table


def _near_misses(plan: Plan) -> Table:
    table = Table(title="Near misses", title_justify="left", box=None, pad_edge=False)
    for name in ("GPUs", "precision"):
        table.add_column(name, no_wrap=True)
    table.add_column("USD\na month", justify="right", no_wrap=True)
    table.add_column("why not")
    for row in plan.near_misses.iter_rows(named=True):
        month = "–" if row["usd_per_month"] is None else f"{row['usd_per_month']:,.0f}"
        table.add_row(_gpus(row), row["precision_id"], month, row["reason"])
    return table


def _gpus(row: Mapping[str, Any]) -> str:
    return str(row["gpu_name"]) if row["gpu_count"] == 1 else f"{row['gpu_count']} × {row['gpu_name']}"


def _band(row: Mapping[str, Any], name: str, form: str) -> str:
    value, low, high = (form.format(row[f"{name}{end}"]) for end in ("", "_low", "_high"))
    return f"{value} ({low}–{high})"


def _break_even(row: Mapping[str, Any], workload: Workload) -> str:
    """Tokens a day; more than it can serve is never."""
    most = row["requests_per_day"] * (workload.input_tokens + workload.output_tokens)
    tokens = row["break_even_tokens_per_day"]
    return f"{tokens / 1e6:,.1f} M" if tokens <= most else "never"


def _offer(row: Mapping[str, Any]) -> str:
    if row["offer_id"] is None:
        return "own (electricity)"
    place = [str(row[c]) for c in ("instance_type", "region") if row[c]]
    return f"{', '.join([row['provider_id'], *place])} ({row['observed_at']:%Y-%m-%d})"
