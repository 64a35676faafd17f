"""What cannot be read gets one clear line, never a traceback, a zero or a guess."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from published_configs import CONFIGS, config

from fitmart.estimator.anatomy import AnatomyError, to_frames
from fitmart.estimator.architectures import parse_config

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def message(changed: dict[str, Any]) -> str:
    with pytest.raises(AnatomyError) as raised:
        parse_config("org/model", changed)
    text = str(raised.value)
    assert text.startswith("org/model: ")
    assert "\n" not in text
    return text


@pytest.mark.parametrize("field", ["hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size"])
def test_missing_field(field: str) -> None:
    broken = config(LLAMA)
    del broken[field]
    assert f"lacks {field}" in message(broken)


@pytest.mark.parametrize(
    ("field", "value", "want"),
    [
        ("hidden_size", "4096", "hidden_size is '4096', not a number"),
        ("hidden_size", 4096.5, "not a whole number"),
        ("hidden_size", True, "not a number"),
        ("hidden_size", float("nan"), "not a number"),
        ("num_hidden_layers", 0, "outside 1 to 2,000"),
        ("num_hidden_layers", -32, "outside 1 to 2,000"),
        ("num_hidden_layers", 10**9, "outside 1 to 2,000"),
        ("vocab_size", 10**12, "outside 1 to 4,000,000"),
        ("num_key_value_heads", 7, "32 attention heads are not a multiple of 7"),
        ("tie_word_embeddings", "yes", "not true or false"),
        ("rope_scaling", 8, "not an object"),
        ("architectures", "LlamaForCausalLM", "not a list"),
    ],
)
def test_wrong_value(field: str, value: object, want: str) -> None:
    assert want in message(config(LLAMA, **{field: value}))


def test_heads_that_do_not_divide() -> None:
    broken = config(LLAMA, hidden_size=4095)
    broken.pop("head_dim", None)
    assert "hidden_size 4095 is not a multiple of 32" in message(broken)


@pytest.mark.parametrize(
    ("model_id", "field", "want"),
    [
        ("google/gemma-3-27b-it", "text_config", "layer_types has 3 entries, fewer than 62"),
        ("zai-org/GLM-5.2", "mlp_layer_types", "mlp_layer_types has 3 entries, fewer than 78"),
        ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", "block_configs", "block_configs has 3 entries, not 80"),
        ("deepseek-ai/DeepSeek-V4-Flash", "compress_ratios", "compress_ratios has 3 entries, fewer than 43"),
    ],
)
def test_list_of_the_wrong_length(model_id: str, field: str, want: str) -> None:
    broken = config(model_id)
    if field == "text_config":
        broken["text_config"]["layer_types"] = broken["text_config"]["layer_types"][:3]
    else:
        broken[field] = broken[field][:3]
    assert want in message(broken)


@pytest.mark.parametrize(
    ("change", "want"),
    [
        ({"model_type": "newthing", "kv_lora_rank": 512}, "it has kv_lora_rank"),
        ({"model_type": "newthing", "num_experts": 8}, "it has num_experts"),
        ({"model_type": "newthing", "architectures": ["NewThingModel"]}, "is no causal language model"),
        ({"model_type": "newthing", "intermediate_size": None}, ""),
    ],
)
def test_unknown_architecture(change: dict[str, Any], want: str) -> None:
    text = message(config(LLAMA, **change))
    assert want in text
    assert "intermediate_size" in text or "unknown model_type 'newthing'" in text


def test_unknown_but_plain_decoder_is_assumed() -> None:
    facts = parse_config("x", config(LLAMA, model_type="newthing", architectures=["NewThingForCausalLM"])).facts
    assert facts.anatomy_basis == "assumed"
    assert parse_config("x", config(LLAMA)).facts.anatomy_basis == "config"


def test_absurd_product() -> None:
    assert "parameters" in message(
        config(LLAMA, num_hidden_layers=2000, intermediate_size=4_000_000, hidden_size=4_000_000, head_dim=128)
    )


@pytest.mark.parametrize("thing", [[], "text", 7, None])
def test_not_an_object(thing: Any) -> None:
    assert "not an object" in message(thing)


@pytest.mark.parametrize(
    ("rope_scaling", "want"),
    [
        ({"rope_type": "yarn", "factor": 10**400, "original_max_position_embeddings": 8192}, "factor is 1000"),
        (
            {"rope_type": "yarn", "factor": float("nan"), "original_max_position_embeddings": 8192},
            "factor is nan, outside",
        ),
        ({"rope_type": "dynamic", "factor": 1e6}, "beyond 1,000,000,000"),
    ],
)
def test_absurd_context(rope_scaling: dict[str, Any], want: str) -> None:
    assert want in message(config(LLAMA, rope_scaling=rope_scaling))


junk = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([2**63, 10**400])
    | st.floats()
    | st.text(max_size=8)
    | st.lists(st.none() | st.integers() | st.dictionaries(st.text(max_size=4), st.integers(), max_size=1), max_size=3)
)


def scopes(value: dict[str, Any]) -> list[dict[str, Any]]:
    """`value` and every object within it that has fields."""
    return [value, *(inner for v in value.values() if isinstance(v, dict) and v for inner in scopes(v))]


@settings(deadline=None, max_examples=300)
@given(model_id=st.sampled_from(sorted(CONFIGS)), data=st.data())
def test_any_single_change_is_read_or_refused_in_one_line(model_id: str, data: st.DataObject) -> None:
    changed = config(model_id)
    target = data.draw(st.sampled_from(scopes(changed)))
    field = data.draw(st.sampled_from(sorted(target)))
    target[field] = data.draw(junk | st.dictionaries(st.text(max_size=4), st.integers(), max_size=2))
    try:
        model = parse_config("x", changed)
    except AnatomyError as error:
        lines = str(error).splitlines()
    else:
        lines = [""]
        assert all(t.rows > 0 and t.columns > 0 and t.copies > 0 for t in model.tensors)
        assert all(c.layers for c in model.caches)
        to_frames([model])
    assert len(lines) == 1
