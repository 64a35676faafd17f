"""Headers of real files, made here as their writers make them."""

import json
import struct
from math import prod

import gguf
import numpy as np
import polars as pl
import pytest

from fitmart.estimator.anatomy import AnatomyError, count_params
from fitmart.estimator.architectures.headers_records import HeaderError
from fitmart.flows.estimates import anatomy_of
from fitmart.flows.headers import anatomy_of_file, headers_of_folder, read_header, weight_files
from fitmart.flows.model_checks import check_models
from fitmart.flows.sources.models import local

CONFIG = {
    "model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "intermediate_size": 128, "vocab_size": 1000, "max_position_embeddings": 4096,
    "tie_word_embeddings": False, "dtype": "bfloat16",
}  # fmt: skip
BYTES = {"BF16": 2, "F16": 2, "F32": 4}


def shapes() -> dict[str, tuple[int, ...]]:
    layer = {
        "self_attn.q_proj": (64, 64), "self_attn.k_proj": (32, 64), "self_attn.v_proj": (32, 64),
        "self_attn.o_proj": (64, 64), "mlp.gate_proj": (128, 64), "mlp.up_proj": (128, 64), "mlp.down_proj": (64, 128),
        "input_layernorm": (64,), "post_attention_layernorm": (64,),
    }  # fmt: skip
    at = {f"model.layers.{i}.{name}.weight": shape for i in (0, 1) for name, shape in layer.items()}
    outside = {"model.embed_tokens.weight": (1000, 64), "lm_head.weight": (1000, 64), "model.norm.weight": (64,)}
    return outside | at


PARAMS = sum(prod(shape) for shape in shapes().values())


def write_safetensors(path, tensors: dict[str, tuple[int, ...]], dtype: str = "BF16", cut: int = 0):
    """The format: 8 bytes of length, JSON, data."""
    described, at = {"__metadata__": {"format": "pt"}}, 0
    for name, shape in tensors.items():
        end = at + prod(shape) * BYTES[dtype]
        described[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(described).encode()
    content = struct.pack("<Q", len(text)) + text + bytes(at)
    path.write_bytes(content[: len(content) - cut])
    return path


def write_gguf(
    path, *, arch: str = "llama", kind: str = "Q8_0", vocabulary: int = 5000, split: tuple[int, int] = (0, 1)
):
    """As llama.cpp's converter writes a llama: metadata, a long vocabulary, then tensors."""
    writer = gguf.GGUFWriter(path, arch)
    writer.add_block_count(2)
    writer.add_context_length(4096)
    writer.add_embedding_length(64)
    writer.add_feed_forward_length(128)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_file_type(gguf.LlamaFileType[f"MOSTLY_{kind}"])
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"token {i}".encode() for i in range(vocabulary)])
    if split[1] > 1:
        writer.add_uint16("split.count", split[1])
    names = {
        "token_embd": (1000, 64), "output": (1000, 64), "output_norm": (64,),
        **{
            f"blk.{i}.{name}": shape
            for i in (0, 1)
            for name, shape in {
                "attn_q": (64, 64), "attn_k": (32, 64), "attn_v": (32, 64), "attn_output": (64, 64),
                "ffn_gate": (128, 64), "ffn_up": (128, 64), "ffn_down": (64, 128),
                "attn_norm": (64,), "ffn_norm": (64,),
            }.items()
        },
    }  # fmt: skip
    for name, shape in list(names.items())[split[0] :: split[1]]:
        data = np.zeros(shape, dtype=np.float32)
        if len(shape) == 1:
            writer.add_tensor(f"{name}.weight", data)
        else:
            packed = gguf.GGMLQuantizationType[kind]
            writer.add_tensor(f"{name}.weight", gguf.quants.quantize(data, packed), raw_dtype=packed)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_config(folder, **fields):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(CONFIG | fields))
    return folder


def test_a_safetensors_file_with_its_config(tmp_path):
    write_config(tmp_path / "acme__llm")
    path = write_safetensors(tmp_path / "acme__llm" / "model.safetensors", shapes())
    anatomy = anatomy_of_file(path)
    assert anatomy.facts.model_id == "acme/llm"
    assert count_params(anatomy)["params_total"] == PARAMS
    assert anatomy.facts.stored_bytes == 2 * PARAMS
    assert anatomy.caches[0].elements_per_token == 2 * 2 * 16
    assert anatomy_of_file(tmp_path / "acme__llm").tensors == anatomy.tensors


def test_shards_are_read_from_any_of_them_and_from_the_index(tmp_path):
    write_config(tmp_path)
    names = sorted(shapes())
    parts = [f"model-0000{n}-of-00002.safetensors" for n in (1, 2)]
    for part, own in zip(parts, (names[:9], names[9:]), strict=True):
        write_safetensors(tmp_path / part, {name: shapes()[name] for name in own})
    index = {
        "metadata": {"total_size": 2 * PARAMS},
        "weight_map": dict.fromkeys(names, parts[0]) | {names[-1]: parts[1]},
    }
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    for path in (tmp_path / parts[1], tmp_path / "model.safetensors.index.json", tmp_path):
        assert anatomy_of_file(path).facts.stored_bytes == 2 * PARAMS
    (tmp_path / parts[0]).unlink()
    with pytest.raises(HeaderError, match=r"00001-of-00002\.safetensors: cannot be read \(No such file"):
        anatomy_of_file(tmp_path / parts[1])


@pytest.mark.parametrize(("kind", "block"), [("Q8_0", 34), ("Q4_0", 18)])
def test_a_gguf_file_needs_no_config(tmp_path, kind, block):
    path = write_gguf(tmp_path / "tiny.gguf", kind=kind)
    anatomy = anatomy_of_file(path)
    facts = anatomy.facts
    assert (facts.model_id, facts.model_type, facts.native_precision) == ("tiny", "llama", f"gguf-{kind.lower()}")
    assert (facts.layers, facts.hidden_size, facts.vocab_size, facts.max_context_tokens) == (2, 64, 1000, 4096)
    assert count_params(anatomy)["params_total"] == PARAMS
    vectors = 5 * 64
    assert facts.stored_bytes == (PARAMS - vectors) // 32 * block + vectors * 4
    assert anatomy.caches[0].elements_per_token == 2 * 2 * 16
    by_name = {t.name: t for t in anatomy.tensors}
    down = by_name["blk.{layer}.ffn_down.weight"]
    assert (down.rows, down.columns, down.layers, down.stored_format) == (64, 128, (0, 1), f"ggml-{kind.lower()}")
    assert (by_name["blk.{layer}.attn_k.weight"].tp_max_shards, down.tp_axis) == (2, "columns")


def test_the_parts_of_a_split_gguf_are_one_model(tmp_path):
    for n in (0, 1):
        write_gguf(tmp_path / f"tiny-0000{n + 1}-of-00002.gguf", split=(n, 2))
    assert count_params(anatomy_of_file(tmp_path / "tiny-00001-of-00002.gguf"))["params_total"] == PARAMS


# ---- what is wrong -------------------------------------------------------------------------------------------------


def test_a_truncated_file_is_one_line(tmp_path):
    write_config(tmp_path)
    path = write_safetensors(tmp_path / "model.safetensors", shapes(), cut=1)
    with pytest.raises(
        HeaderError, match=rf"cut short: its tensors take {2 * PARAMS:,} bytes, {2 * PARAMS - 1:,} are there"
    ):
        anatomy_of_file(path)
    content = write_gguf(tmp_path / "tiny.gguf").read_bytes()
    for length, reason in (
        (3, "cut short"),
        (1000, "in the middle of its header"),
        (len(content) - 64, "its tensors end"),
    ):
        (tmp_path / "tiny.gguf").write_bytes(content[:length])
        with pytest.raises(HeaderError, match=reason) as caught:
            read_header(tmp_path / "tiny.gguf")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"", b"\x10", b"GGUF", b"\xff" * 40, struct.pack("<Q", 30) + b"{" * 30, b"PK\x03\x04" * 9]
)
@pytest.mark.parametrize("name", ["x.safetensors", "x.gguf"])
def test_what_is_no_weights_file_is_one_line(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(HeaderError, match=rf"{name}: "):
        anatomy_of_file(tmp_path / name)


def test_safetensors_without_a_config_and_folders_without_weights(tmp_path):
    path = write_safetensors(tmp_path / "model.safetensors", shapes())
    with pytest.raises(HeaderError, match=f"holds {PARAMS:,} parameters .* without config.json"):
        anatomy_of_file(path)
    write_config(tmp_path / "empty")
    with pytest.raises(HeaderError, match="no weights beside it"):
        anatomy_of_file(tmp_path / "empty")
    with pytest.raises(HeaderError, match="cannot be read"):
        anatomy_of_file(tmp_path / "none.gguf")
    write_config(tmp_path, model_type="mystery", n_routed_experts=3)
    with pytest.raises(AnatomyError, match="mystery"):
        anatomy_of_file(path)


@pytest.mark.parametrize(
    ("names", "files"),
    [
        (["model.safetensors", "adapter_model.safetensors", "consolidated.safetensors"], ["model.safetensors"]),
        (["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", "x.safetensors"],
         ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]),
        (["original/model.safetensors", "config.json"], []),
        (["a.safetensors", "b.safetensors"], []),
        (["llm.safetensors"], ["llm.safetensors"]),
    ],
)  # fmt: skip
def test_which_files_are_the_checkpoint(names, files):
    assert list(weight_files(names)) == files


# ---- private models ------------------------------------------------------------------------------------------------


def test_private_models_take_their_tensors_from_the_files_beside(tmp_path):
    write_config(tmp_path / "acme__full")
    padded = shapes() | {f"model.layers.{i}.mlp.down_proj.weight": (64, 160) for i in (0, 1)}
    write_safetensors(tmp_path / "acme__full" / "model.safetensors", padded)
    (tmp_path / "acme__quant").mkdir()
    write_gguf(tmp_path / "acme__quant" / "any.gguf")
    write_gguf(tmp_path / "acme__flat.gguf")
    write_config(tmp_path / "acme__plain")
    records, rejected = local.read(tmp_path)
    assert rejected == []
    found = {r.model_id: anatomy_of(r).facts for r in records}
    assert {name: facts.anatomy_basis for name, facts in found.items()} == {
        "acme/flat": "header",
        "acme/full": "header",
        "acme/plain": "config",
        "acme/quant": "header",
    }
    assert found["acme/full"].stored_bytes == 2 * (PARAMS + 2 * 64 * 32)


def test_headers_alone_stand_for_files_that_are_elsewhere(tmp_path):
    folder = write_config(tmp_path / "acme__llm")
    whole = read_header(write_safetensors(tmp_path / "elsewhere.safetensors", shapes()))
    text = (tmp_path / "elsewhere.safetensors").read_bytes()
    described = json.loads(text[8 : 8 + struct.unpack("<Q", text[:8])[0]])
    (folder / "headers.json").write_text(json.dumps({"model.safetensors": described}))
    assert headers_of_folder(folder) == (whole,)
    (folder / "headers.json").write_text("[")
    records, rejected = local.read(tmp_path)
    assert [r.headers for r in records] == [()]
    assert "headers.json: is not JSON" in rejected[0].reason


def test_a_broken_file_is_named_and_the_config_serves_alone(tmp_path):
    folder = write_config(tmp_path / "acme__llm")
    write_safetensors(folder / "model.safetensors", shapes(), cut=5)
    (tmp_path / "acme__bad.gguf").write_bytes(b"GGUF")
    records, rejected = local.read(tmp_path)
    assert [(r.model_id, anatomy_of(r).facts.anatomy_basis) for r in records] == [("acme/llm", "config")]
    assert ["cut short" in r.reason for r in rejected] == [True, True]


def test_an_index_without_its_shards_leaves_the_config_alone(tmp_path):
    folder = write_config(tmp_path / "acme__llm")
    index = {"metadata": {"total_size": 5}, "weight_map": {"a": "model-00001-of-00001.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    records, rejected = local.read(tmp_path)
    assert ([r.headers for r in records], rejected) == ([()], [])


def test_config_and_headers_are_compared_model_by_model(tmp_path):
    write_safetensors(write_config(tmp_path / "acme__good") / "model.safetensors", shapes())
    broken = {"a.qweight": (8, 8), "a.scales": (8,)}
    write_safetensors(write_config(tmp_path / "acme__odd") / "model.safetensors", broken)
    write_config(tmp_path / "acme__plain")
    records, _ = local.read(tmp_path)
    frame = check_models(records, [anatomy_of(r) for r in records])
    good = frame.filter(model_id="acme/good")
    assert good["is_equal"].all()
    assert dict(good.select("check_name", "header_value").iter_rows())["params_total"] == PARAMS
    assert set(frame["model_id"]) == {"acme/good", "acme/odd"}
    odd = frame.row(by_predicate=pl.col("model_id") == "acme/odd", named=True)
    assert (odd["check_name"], odd["source_id"]) == ("headers", "local-models")
    assert odd["explanation"].startswith("a: cannot be unpacked from")
