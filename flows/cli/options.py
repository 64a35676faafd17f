"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click


def data_dir_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--data-dir`, else FITMART_DATA_DIR, else ./data."""
    return click.option(
        "--data-dir",
        type=click.Path(path_type=Path, file_okay=False),
        envvar="FITMART_DATA_DIR",
        default=Path("data"),
        show_default="./data",
        help="Where the catalog, its builds and the landed payloads live.",
    )(function)


def models_dir_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--models-dir`, else FITMART_MODELS_DIR: private models."""
    return click.option(
        "--models-dir",
        type=click.Path(path_type=Path, file_okay=False, exists=True),
        envvar="FITMART_MODELS_DIR",
        default=None,
        help="Private models: <org>__<name>.json or <org>__<name>/config.json.",
    )(function)


def include_option(function: Callable[..., Any]) -> Callable[..., Any]:
    """`--include`: a smaller catalog."""
    return click.option(
        "--include", multiple=True, metavar="PATTERN", help="Only models that match ('Qwen/*'); may be repeated."
    )(function)
