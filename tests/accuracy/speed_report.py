"""The section "Speed" of RESULTS.md: errors with parts left out, bands and their coverage, beside plain rooflines."""

from pathlib import Path

import numpy as np
import polars as pl

KINDS = {"decode": "decode step", "prefill": "prefill", "e2e": "whole request"}
Bands = dict[tuple[str, str], tuple[float, float]]


def pair(errors: pl.Series) -> str:
    """median / mean of |predicted / measured - 1|, in percent."""
    kept = errors.drop_nulls()
    if kept.is_empty():
        return "–"
    share = (kept.exp() - 1).abs() * 100
    return f"{share.median():.1f} / {share.mean():.1f}"


def best_efficiency(rows: pl.DataFrame) -> float:
    """The one efficiency that brings the roofline nearest to all rows (least mean error)."""
    ratio = (rows["roofline_s"] / rows["seconds"]).to_numpy()
    return float(min(np.arange(0.2, 0.96, 0.01), key=lambda e: np.abs(ratio / e - 1).mean()))


def covered(rows: pl.DataFrame, bands: Bands, column: str) -> str:
    """Share of the rows, predicted with `column` left out, whose measured time lies within their band."""
    ends = pl.DataFrame(
        [(g, k, float(np.log(low)), float(np.log(high))) for (g, k), (low, high) in bands.items()],
        schema=["group", "kind", "low", "high"],
        orient="row",
    )
    inside = (
        rows.join(ends, on=["group", "kind"])
        .filter(pl.col(column).is_not_null())
        .select((-pl.col(column)).is_between("low", "high"))
        .to_series()
    )
    return f"{100 * inside.mean():.0f} % of {inside.len()}" if inside.len() else "–"  # type: ignore[operator]


def by_kind(rows: pl.DataFrame, bands: Bands) -> list[str]:
    """One line a kind: the errors, the coverage and the roofline."""
    compared = rows.filter(pl.col("screened").is_null())
    efficiency = best_efficiency(compared)
    roofline = (pl.col("roofline_s") / efficiency / pl.col("seconds")).log()
    lines = [
        "| | n | in sample | without its model | without its GPU | without its source "
        f"| in band: model, source left out | roofline / {efficiency:.2f} | all rows, nothing screened |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for kind, name in {"all": "all", **KINDS}.items():
        of_kind = pl.lit(value=True) if kind == "all" else pl.col("kind") == kind
        part, every = compared.filter(of_kind), rows.filter(of_kind)
        cover = ", ".join(covered(part, bands, f"without_{who}") for who in ("model", "source"))
        lines.append(
            f"| {name} | {part.height} | {pair(part['fit'])} | {pair(part['without_model'])} "
            f"| {pair(part['without_gpu'])} | {pair(part['without_source'])} | {cover} "
            f"| {pair(part.select(roofline).to_series())} | {pair(every['fit'])} ({every.height}) |"
        )
    several = rows.filter(pl.col("screened") == "prompt over several GPUs")
    lines.append(
        f"| prefill over several GPUs (not fitted) | {several.height} | {pair(several['fit'])} "
        f"| {pair(several['without_model'])} | {pair(several['without_gpu'])} "
        f"| {pair(several['without_source'])} | | | |"
    )
    return lines


def by_group(rows: pl.DataFrame, bands: Bands) -> list[str]:
    """One line a group and kind: what it rests on, its errors and its band."""
    lines = [
        "| engine · device class | kind | n, models, GPUs, sources | in sample | without its model | without its GPU "
        "| without its source | time × | width |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    compared = rows.filter(pl.col("screened").is_null()).sort("group", "kind")
    for (group, kind), part in compared.partition_by("group", "kind", as_dict=True, maintain_order=True).items():
        count = ", ".join(str(part[c].n_unique()) for c in ("model_id", "gpu_id", "source"))
        low, high = bands.get((str(group), str(kind)), (None, None))
        width = ("–", "–") if low is None or high is None else (f"{low:.2f}–{high:.2f}", f"{high / low:.2f}")
        errors = " | ".join(pair(part[c]) for c in ("fit", "without_model", "without_gpu", "without_source"))
        lines.append(f"| {group} | {kind} | {part.height}, {count} | {errors} | {width[0]} | {width[1]} |")
    return lines


def section(rows: pl.DataFrame, bands: Bands) -> str:
    """The whole section, without its heading."""
    screened = rows["screened"].drop_nulls().value_counts(sort=True).rows()
    left = "; ".join(f"{n} {why}" for why, n in screened)
    urls = rows["source"].value_counts(sort=True).rows()
    sources = ", ".join(f"{name} ({n})" for name, n in urls)
    return "\n".join(
        [
            f"{rows.height} published measurements (measurements/speed.csv, each with its source): {sources}.",
            "Fitted and reported by `python tests/accuracy/fit_speed.py`; error = |predicted / measured - 1| of time,",
            f"median / mean in percent. Screened by data sheets before any fit: {left}.",
            "",
            *by_kind(rows, bands),
            "",
            *by_group(rows, bands),
            "",
            "The factors of today's serving engines on NVIDIA data-centre cards come from measurements that may not be",
            "handed on: 3,250 rows of vLLM, SGLang and TensorRT-LLM at 4 and more concurrent requests; error without",
            "the row's model 22.3 / 32.3, without its system 20.9 / 30.4, the best single efficiency 39.4 / 42.9.",
        ]
    )


def replace_section(path: Path, title: str, text: str) -> None:
    """Put `text` under `## title`, in place of what stands there."""
    old = path.read_text(encoding="utf-8") if path.exists() else "# Accuracy\n"
    head, found, rest = old.partition(f"\n## {title}\n")
    following = rest.partition("\n## ")
    tail = f"\n## {following[2]}" if found and following[1] else ""
    path.write_text(f"{head.rstrip()}\n\n## {title}\n\n{text}\n{tail}", encoding="utf-8")
