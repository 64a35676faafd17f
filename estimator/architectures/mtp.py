"""Multi-token-prediction layers: stored in the checkpoint, loaded only for speculative decoding."""

from collections.abc import Callable
from dataclasses import replace

from fitmart.estimator.architectures.config import MAX_LAYERS
from fitmart.estimator.architectures.decoder import Shape
from fitmart.estimator.architectures.parts import Layers, Parts

AddLayers = Callable[[Layers], None]


def deepseek_mtp(parts: Parts, shape: Shape, add_layers: AddLayers, *, has_copies: bool = True) -> None:
    """DeepSeek-V3's form: whole layers behind the last, each with its projection and norms.

    `add_layers` adds the weights of the model's own kind of (expert) layer. `has_copies`: embedding and output matrix
    are stored again (DeepSeek-V3, GLM-4.5; not GLM-5).
    """
    count = parts.config.integer("num_nextn_predict_layers", default=0, low=0, high=MAX_LAYERS)
    shape.mtp_layers = count
    if not count:
        return
    layers = tuple(range(shape.layers, shape.layers + count))
    since, at, hidden = len(parts.tensors), f"{parts.model}layers.{{layer}}.", shape.hidden
    add_expert_layers(shape, layers, add_layers)
    parts.linear("mtp", f"{at}eh_proj", hidden, 2 * hidden, layers=layers)
    for name in ("enorm", "hnorm", "shared_head.norm"):
        parts.norm(at + name, hidden, layers=layers)
    if has_copies:
        for name in ("embed_tokens", "shared_head.head"):
            parts.linear("mtp", at + name, shape.vocab, hidden, layers=layers, axis="rows")
    parts.as_mtp(since)


def add_expert_layers(shape: Shape, layers: Layers, add_layers: AddLayers) -> None:
    """Add `layers` as expert layers (where the model has experts) without counting them as the model's own."""
    own = shape.moe
    if own:
        shape.moe = replace(own, layers=layers)
    add_layers(layers)
    shape.moe = own
