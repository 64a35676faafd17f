"""model_type → the function that reads a text model of that family."""

from collections.abc import Callable, Mapping

from fitmart.estimator.architectures.decoder import Shape, Style, build
from fitmart.estimator.architectures.parts import Parts

Family = Callable[[Parts], Shape]

FAMILIES: dict[str, Family] = {}


def family(*model_types: str) -> Callable[[Family], Family]:
    """Register a reader under its model types."""

    def register(reader: Family) -> Family:
        for model_type in model_types:
            if model_type in FAMILIES:
                raise ValueError(f"model_type {model_type} is registered twice")
            FAMILIES[model_type] = reader
        return reader

    return register


def register_styles(styles: Mapping[str, Style]) -> None:
    """Register families that are a plain decoder of a given style."""
    for model_type, style in styles.items():
        family(model_type)(_styled(style))


def _styled(style: Style) -> Family:
    def read(parts: Parts) -> Shape:
        return build(parts, style)

    return read
