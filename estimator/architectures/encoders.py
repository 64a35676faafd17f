"""Encoders, which keep nothing between tokens: BERT and RoBERTa kin, ModernBERT."""

from fitmart.estimator.architectures.attention import read_heads
from fitmart.estimator.architectures.decoder import Shape, read_shape
from fitmart.estimator.architectures.parts import Parts
from fitmart.estimator.architectures.registry import family


def _is_masked_lm(parts: Parts) -> bool:
    """Whether the stored class is the one with a language-model head."""
    architectures = parts.config.items("architectures") or [""]
    return str(architectures[0]).endswith(("ForMaskedLM", "ForPreTraining"))


@family("bert", "roberta", "xlm-roberta", "camembert")
def bert(parts: Parts) -> Shape:
    """BERT: three embedding tables, post-norm layers, a pooler. Serving loads the encoder, not a masked-LM head."""
    c = parts.config
    shape = read_shape(c)
    shape.is_encoder, hidden, every = True, shape.hidden, shape.every
    shape.heads = read_heads(c, hidden)
    shape.width = width = c.integer("intermediate_size")
    has_head = _is_masked_lm(parts)
    is_roberta = c.string("model_type") in ("roberta", "xlm-roberta", "camembert")
    root = ("roberta." if is_roberta else "bert.") if has_head else ""
    tables = (
        ("word_embeddings", shape.vocab),
        ("position_embeddings", c.integer("max_position_embeddings")),
        ("token_type_embeddings", c.integer("type_vocab_size", default=2)),
    )
    for name, rows in tables:
        parts.add("embedding", f"{root}embeddings.{name}.weight", rows, hidden, axis="rows")
    parts.norm(f"{root}embeddings.LayerNorm", hidden, bias=True)
    at = f"{root}encoder.layer.{{layer}}."
    for name in ("query", "key", "value"):
        parts.linear("attention", f"{at}attention.self.{name}", hidden, hidden, layers=every, axis="rows", bias=True)
    parts.linear("attention", f"{at}attention.output.dense", hidden, hidden, layers=every, axis="columns", bias=True)
    parts.linear("mlp", f"{at}intermediate.dense", width, hidden, layers=every, axis="rows", bias=True)
    parts.linear("mlp", f"{at}output.dense", hidden, width, layers=every, axis="columns", bias=True)
    for name in ("attention.output.LayerNorm", "output.LayerNorm"):
        parts.norm(at + name, hidden, layers=every, bias=True)
    parts.linear("mlp", f"{root}pooler.dense", hidden, hidden, bias=True)
    if has_head:
        head = "lm_head" if is_roberta else "cls.predictions"
        dense = f"{head}.dense" if is_roberta else f"{head}.transform.dense"
        parts.buffer("lm_head", f"{dense}.weight", hidden, hidden)
        parts.buffer("lm_head", f"{head}.bias", shape.vocab)
    return shape


@family("modernbert")
def modernbert(parts: Parts) -> Shape:
    """ModernBERT: no positions, gated MLP in one matrix, no biases, no norm before the first attention."""
    c = parts.config
    shape = read_shape(c)
    shape.is_encoder, hidden, every = True, shape.hidden, shape.every
    shape.heads = read_heads(c, hidden)
    shape.width = width = c.integer("intermediate_size")
    has_head = _is_masked_lm(parts)
    root = "model." if has_head else ""
    bias, norm_bias = c.boolean("attention_bias"), c.boolean("norm_bias")
    parts.add("embedding", f"{root}embeddings.tok_embeddings.weight", shape.vocab, hidden, axis="rows")
    parts.norm(f"{root}embeddings.norm", hidden, bias=norm_bias)
    at = f"{root}layers.{{layer}}."
    parts.norm(f"{at}attn_norm", hidden, layers=every[1:], bias=norm_bias)
    parts.norm(f"{at}mlp_norm", hidden, layers=every, bias=norm_bias)
    parts.linear("attention", f"{at}attn.Wqkv", 3 * hidden, hidden, layers=every, axis="rows", bias=bias)
    parts.linear("attention", f"{at}attn.Wo", hidden, hidden, layers=every, axis="columns", bias=bias)
    mlp_bias = c.boolean("mlp_bias")
    parts.linear("mlp", f"{at}mlp.Wi", 2 * width, hidden, layers=every, axis="rows", bias=mlp_bias)
    parts.linear("mlp", f"{at}mlp.Wo", hidden, width, layers=every, axis="columns", bias=mlp_bias)
    parts.norm(f"{root}final_norm", hidden, bias=norm_bias)
    if has_head:
        parts.buffer("lm_head", "head.dense.weight", hidden, hidden)
        parts.buffer("lm_head", "decoder.bias", shape.vocab)
    return shape
