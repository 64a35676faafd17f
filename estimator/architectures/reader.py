"""config.json → Anatomy, through the family that its model_type names."""

from collections.abc import Mapping
from typing import Any

from fitmart.estimator.anatomy import Anatomy, AnatomyError
from fitmart.estimator.architectures.class_defaults import class_defaults
from fitmart.estimator.architectures.config import Config, Reads
from fitmart.estimator.architectures.facts import make_facts, native_dtype
from fitmart.estimator.architectures.parts import Parts
from fitmart.estimator.architectures.registry import FAMILIES

MAX_PARAMS = 10**15


def read_anatomy(model_id: str, config: Mapping[str, Any], reads: Reads) -> Anatomy:
    """The anatomy of one config; `reads` gathers the fields that were looked at."""
    if not isinstance(config, Mapping):
        raise AnatomyError(f"{model_id}: config.json is not an object")
    top = Config(model_id, [((), config)], reads=reads)
    model_type = top.string("model_type") or ""
    c = top.text(None, class_defaults(model_type, is_nested=False))
    parts = Parts(c)
    if model_type not in FAMILIES:
        raise AnatomyError(f"{model_id}: unknown model_type {model_type!r}")
    shape = FAMILIES[model_type](parts)
    architectures = top.items("architectures") or []
    facts = make_facts(
        parts,
        shape,
        model_type=model_type,
        architecture=str(architectures[0]) if architectures else None,
        family=model_type,
        task="text-generation",
        native_dtype=native_dtype(c),
    )
    return Anatomy(facts=facts, tensors=tuple(parts.tensors), caches=tuple(parts.caches))
