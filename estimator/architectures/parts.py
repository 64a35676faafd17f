"""The growing parts list of one model: what every family adds its tensors and caches to."""

from dataclasses import replace

from fitmart.estimator.anatomy import Cache, Component, Tensor, TpAxis
from fitmart.estimator.architectures.config import Config

Layers = tuple[int, ...]


class Parts:
    """Tensors and caches under one name prefix.

    `model` is the prefix of the text model's weights ("model."), `head` the name of the output matrix.
    """

    def __init__(self, config: Config, *, model: str = "model.", head: str = "lm_head") -> None:
        self.config = config
        self.model = model
        self.head = head
        self.tensors: list[Tensor] = []
        self.caches: list[Cache] = []

    def add(
        self,
        component: Component,
        name: str,
        rows: int,
        columns: int = 1,
        *,
        layers: Layers = (),
        copies: int = 1,
        axis: TpAxis = "replicated",
        shards: int | None = None,
        is_in_memory: bool = True,
        is_stored: bool = True,
    ) -> None:
        """One tensor under its full name. A pattern of layers that do not exist adds nothing."""
        if "{layer}" in name and not layers:
            return
        self.tensors.append(
            Tensor(
                component=component,
                name=name,
                rows=rows,
                columns=columns,
                layers=layers,
                copies=copies,
                tp_axis=axis,
                tp_max_shards=shards,
                is_in_memory=is_in_memory,
                is_stored=is_stored,
            )
        )

    def linear(
        self,
        component: Component,
        name: str,
        rows: int,
        columns: int,
        *,
        layers: Layers = (),
        copies: int = 1,
        axis: TpAxis = "replicated",
        shards: int | None = None,
        bias: bool = False,
    ) -> None:
        """A projection `name`.weight (rows outputs × columns inputs) and its bias, cut with the rows."""
        self.add(component, f"{name}.weight", rows, columns, layers=layers, copies=copies, axis=axis, shards=shards)
        if bias:
            cut: TpAxis = "rows" if axis == "rows" else "replicated"
            self.add(component, f"{name}.bias", rows, layers=layers, copies=copies, axis=cut, shards=shards)

    def norm(
        self, name: str, size: int, *, layers: Layers = (), bias: bool = False, component: Component = "norm"
    ) -> None:
        """A norm's weight and, for a LayerNorm, its bias."""
        self.add(component, f"{name}.weight", size, layers=layers)
        if bias:
            self.add(component, f"{name}.bias", size, layers=layers)

    def buffer(self, component: Component, name: str, rows: int, columns: int = 1, *, layers: Layers = ()) -> None:
        """Stored beside the parameters, but no parameter of the class (router corrections, causal masks)."""
        self.add(component, name, rows, columns, layers=layers, is_in_memory=False)

    def embed(self, vocab: int, hidden: int, *, name: str = "embed_tokens", component: Component = "embedding") -> None:
        """The token embedding, cut along the vocabulary."""
        self.add(component, f"{self.model}{name}.weight", vocab, hidden, axis="rows")

    def output(
        self, vocab: int, hidden: int, *, is_tied: bool, is_tied_stored: bool = False, bias: bool = False
    ) -> None:
        """The output matrix: absent when tied, unless the checkpoint keeps a copy of it."""
        if not is_tied or is_tied_stored:
            self.add("lm_head", f"{self.head}.weight", vocab, hidden, axis="rows", is_in_memory=not is_tied)
        if bias:
            self.add("lm_head", f"{self.head}.bias", vocab, axis="rows")

    def as_mtp(self, since: int) -> None:
        """Turn the tensors added from index `since` on into multi-token-prediction weights: stored, not loaded."""
        self.tensors[since:] = [replace(t, component="mtp", is_in_memory=False) for t in self.tensors[since:]]
