"""Factors from measurements: seconds ≈ Σ factor × term, fitted in logarithms, and refitted with a part left out.

The loss is Huber's on log(predicted / measured); each (GPU, model, kind) counts as the square root of its rows, so
that no long benchmark drowns a short one. Priors are log-normal and say what such kernels are known to reach; they
decide where no measurement does.
"""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from fitmart.estimator.speed_terms import TERMS
from fitmart.estimator.workload import LAYER_SPLIT_ENGINES

Vector = NDArray[np.float64]

NAMES = tuple(TERMS)
HUBER, SCALE = 0.15, 0.02  # |log error| from which the loss grows linearly; variance of one row
FEWEST_ROWS = 8
# No engine reads faster than the data sheet, nor computes twice as fast as its dense rate.
FLOOR = {"w16": 1.0, "w8": 1.0, "w4": 1.0, "kv": 1.0, "fl": 0.5, "pf16": 0.5, "pfq": 0.5}
# value and spread (of its logarithm); seconds for L, Lo, Lm, B, ar.
PRIOR = {
    "w16": (1.15, 0.3), "w8": (1.15, 0.3), "w4": (1.15, 0.3), "kv": (2.0, 0.7), "kvq": (0.1, 0.7), "fl": (3.0, 1.0),
    "pf16": (1.6, 0.5), "pfq": (2.2, 0.5), "pfm": (2.5, 0.7), "pfa": (2.0, 0.7), "pfs": (2.0, 0.5),
    "pfd": (1.1, 0.5), "pfx": (1.0, 0.5), "L": (4.5e-5, 0.7), "Lo": (3e-5, 0.7), "Lm": (1e-4, 0.7), "B": (2e-5, 1.5),
    "ar": (1.5e-5, 1.0), "arb": (2.0, 1.0), "arp": (2.0, 0.7),
}  # fmt: skip
# Servers of 2024 schedule in Python, fuse more and batch more.
SERVER_PRIOR = PRIOR | {
    "w16": (1.2, 0.3), "w8": (1.25, 0.3), "w4": (1.4, 0.3), "kv": (1.5, 0.12), "fl": (1.5, 0.7), "pf16": (1.7, 0.7),
    "pfq": (2.2, 0.7), "pfm": (2.0, 1.0), "pfa": (2.0, 0.7), "L": (5e-5, 0.8), "Lm": (5e-5, 0.5), "B": (5e-5, 1.0),
}  # fmt: skip
# One code base, measured with one tool on every class of device: its groups share what depends on the engine, not on
# the device's units, as priors of this share of the usual spread.
POOLED_ENGINE, POOLED_SPREAD = "llama.cpp", 0.7
SHARED = ("w16", "w8", "w4", "kv", "L", "Lo", "Lm", "B", "pfd", "pfs", "pfx")
# Terms that only a prompt timed by itself can tell from the rest.
PROMPT_ONLY = ("pfa", "pfs", "pfx")
PINNED_SPREAD = 0.05


@dataclass(frozen=True, slots=True)
class Prior:
    """Mean and spread of log(factor - floor), one entry a term."""

    mean: Vector
    spread: Vector

    @classmethod
    def of(cls, table: dict[str, tuple[float, float]]) -> "Prior":
        mean = np.log([table[n][0] - FLOOR.get(n, 0.0) for n in NAMES])
        return cls(mean, np.array([table[n][1] * (2 if n in FLOOR else 1) for n in NAMES]))


_FLOOR = np.array([FLOOR.get(n, 0.0) for n in NAMES])


def prior_of(engine_id: str) -> Prior:
    """The prior of an engine's own kind."""
    return Prior.of(PRIOR if engine_id in (*LAYER_SPLIT_ENGINES, "exllamav2") else SERVER_PRIOR)


def weights_of(rows: pl.DataFrame) -> Vector:
    """1 / √n of each (GPU, model, kind), mean 1."""
    weights = 1 / rows.select(pl.len().over("gpu_id", "model_id", "kind")).to_series().sqrt().to_numpy()
    return weights / weights.mean()


def identified(terms: Vector) -> list[int]:
    """Terms that take part and can be told from the others."""
    used = [j for j in range(len(NAMES)) if (terms[:, j] > 0).any()]
    old, all_layers = NAMES.index("Lo"), NAMES.index("L")
    if old in used and (terms[:, old] == terms[:, all_layers]).all():
        used.remove(old)
    return used


def fit(rows: pl.DataFrame, prior: Prior) -> Vector:
    """log(factor - floor) of every term: the prior's where no row tells."""
    terms, seconds, weights = rows.select(NAMES).to_numpy(), np.log(rows["seconds"].to_numpy()), weights_of(rows)
    used = identified(terms)
    spread = prior.spread.copy()
    if not (rows["kind"] == "prefill").any():
        spread[[NAMES.index(n) for n in PROMPT_ONLY]] = PINNED_SPREAD
    terms, floor, mean, spread = terms[:, used], _FLOOR[used], prior.mean[used], spread[used]

    def loss(guess: Vector) -> tuple[float, Vector]:
        residual = np.log(terms @ (floor + np.exp(guess))) - seconds
        size = np.abs(residual)
        huber = np.where(size < HUBER, residual**2 / 2, HUBER * (size - HUBER / 2))
        return float((weights * huber).sum() / SCALE + (((guess - mean) / spread) ** 2).sum() / 2), residual

    guess, damping = mean.copy(), 1e-3
    best, residual = loss(guess)
    for _ in range(60):  # Levenberg-Marquardt on reweighted squares
        factor = np.exp(guess)
        slope = terms * factor / (terms @ (floor + factor))[:, None]
        pull = (weights * np.minimum(1, HUBER / np.maximum(np.abs(residual), 1e-9)) / SCALE)[:, None]
        hessian = (slope * pull).T @ slope + np.diag(1 / spread**2)
        gradient = (slope * pull).T @ residual + (guess - mean) / spread**2
        step = np.clip(np.linalg.solve(hessian + damping * np.diag(np.diag(hessian)), -gradient), -1, 1)
        value, left = loss(guess + step)
        if value < best:
            is_done = best - value < 1e-7 * best
            guess, best, residual, damping = guess + step, value, left, max(damping / 5, 1e-9)
            if is_done:
                break
        elif (damping := damping * 10) > 1e9:
            break
    result = prior.mean.copy()
    result[used] = guess
    return result


def factors(fitted: Vector) -> Vector:
    return _FLOOR + np.exp(fitted)


def pooled_prior(rows: pl.DataFrame, engine_id: str) -> Prior:
    """The prior of an engine's groups: for the pooled engine its shared terms are centred on the fit of all groups."""
    own = prior_of(engine_id)
    if engine_id != POOLED_ENGINE:
        return own
    pool, shared = fit(rows, own), [NAMES.index(n) for n in SHARED]
    mean, spread = own.mean.copy(), own.spread.copy()
    mean[shared], spread[shared] = pool[shared], spread[shared] * POOLED_SPREAD
    return Prior(mean, spread)


def fit_groups(rows: pl.DataFrame) -> dict[str, Vector]:
    """Factors of every group (engine · device class) with enough rows."""
    found: dict[str, Vector] = {}
    for (engine,), of_engine in rows.partition_by("engine_id", as_dict=True).items():
        if of_engine.height < FEWEST_ROWS:
            continue
        prior = pooled_prior(of_engine, str(engine))
        for (group,), part in of_engine.partition_by("group", as_dict=True).items():
            if part.height >= FEWEST_ROWS:
                found[str(group)] = factors(fit(part, prior))
    return found


def log_errors(rows: pl.DataFrame, found: dict[str, Vector]) -> pl.Series:
    """log(predicted / measured) of each row; null where its group has no factors."""
    terms, seconds = rows.select(NAMES).to_numpy(), rows["seconds"].to_numpy()
    known = np.array([found.get(g, np.full(len(NAMES), np.nan)) for g in rows["group"]])
    return pl.Series(np.log((terms * known).sum(axis=1) / seconds)).fill_nan(None)


def left_out(rows: pl.DataFrame, by: str, train: pl.Series) -> pl.Series:
    """log_errors of each row by factors that saw no row of the same model, GPU or source (`by`)."""
    indexed = rows.with_row_index("index").with_columns(train=train)
    parts = []
    for (value,), part in indexed.partition_by(by, as_dict=True).items():
        rest = indexed.filter(
            pl.col("train") & (pl.col(by) != value) & pl.col("engine_id").is_in(part["engine_id"].unique().to_list())
        )
        parts.append(part.select("index", error=log_errors(part, fit_groups(rest))))
    return pl.concat(parts).sort("index")["error"]
