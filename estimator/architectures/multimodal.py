"""Multimodal wrappers: which text model they hold, under which names, and which towers stand beside it."""

from collections.abc import Callable
from dataclasses import dataclass

from fitmart.estimator.architectures import vision, vision_gemma, vision_meta
from fitmart.estimator.architectures.config import Config
from fitmart.estimator.architectures.parts import Parts

Tower = Callable[[Parts, Config, int], None]

OLD = ("language_model.model.", "language_model.lm_head")
NEW = ("model.language_model.", "lm_head")
FLAT = ("model.", "lm_head")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrapper:
    """One multimodal `model_type`. `text`: the type of a text model that does not name its own."""

    text: str
    names: tuple[str, str] = OLD
    vision: Tower | None = None
    audio: Tower | None = None
    is_vision_default: bool = False  # the class makes its tower even where the config has no vision_config
    is_audio_default: bool = False
    renames: tuple[tuple[str, str], ...] = ()  # text model_type → the family that reads it here


WRAPPERS: dict[str, Wrapper] = {
    "gemma3": Wrapper(text="gemma3_text", vision=vision.gemma3_vision, is_vision_default=True),
    "shieldgemma2": Wrapper(text="gemma3_text", vision=vision.gemma3_vision),
    "gemma3n": Wrapper(
        text="gemma3n_text",
        names=NEW,
        vision=vision_gemma.gemma3n_vision,
        audio=vision_gemma.gemma3n_audio,
        is_vision_default=True,
        is_audio_default=True,
    ),
    "gemma4": Wrapper(
        text="gemma4_text", names=NEW, vision=vision_gemma.gemma4_vision, audio=vision_gemma.gemma4_audio
    ),
    "paligemma": Wrapper(text="gemma", vision=vision.paligemma_vision),
    "mistral3": Wrapper(text="mistral", vision=vision.mistral3_vision, is_vision_default=True),
    "llava": Wrapper(text="llama", vision=vision.llava_or_pixtral, is_vision_default=True),
    "llava_next": Wrapper(text="llama", vision=vision.llava_next_vision),
    "llava_onevision": Wrapper(text="qwen2", vision=vision.llava_next_vision),
    "vipllava": Wrapper(text="llama", vision=vision.llava_vision),
    "llama4": Wrapper(text="llama4_text", vision=vision_meta.llama4_vision, is_vision_default=True),
    "mllama": Wrapper(text="mllama_text_model", vision=vision_meta.mllama_vision, is_vision_default=True),
    "qwen2_vl": Wrapper(text="qwen2_vl_text", names=FLAT, vision=vision.qwen2_vision, is_vision_default=True),
    "qwen2_5_vl": Wrapper(text="qwen2_5_vl_text", names=FLAT, vision=vision.qwen25_vision, is_vision_default=True),
    "qwen3_vl": Wrapper(text="qwen3_vl_text", names=NEW, vision=vision.qwen3_vision, is_vision_default=True),
    "qwen3_vl_moe": Wrapper(text="qwen3_vl_moe_text", names=NEW, vision=vision.qwen3_vision, is_vision_default=True),
    "qwen3_5": Wrapper(text="qwen3_5_text", names=NEW, vision=vision.qwen3_vision, is_vision_default=True),
    "qwen3_5_moe": Wrapper(text="qwen3_5_moe_text", names=NEW, vision=vision.qwen3_vision, is_vision_default=True),
    "glm4v": Wrapper(text="glm4v_text", names=NEW, vision=vision.glm4v_vision, is_vision_default=True),
    "glm46v": Wrapper(text="glm4v_text", names=NEW, vision=vision.glm4v_vision, is_vision_default=True),
    "glm4v_moe": Wrapper(text="glm4v_moe_text", names=NEW, vision=vision.glm4v_vision, is_vision_default=True),
    "kimi_k25": Wrapper(text="kimi_k2", vision=vision.kimi_vision, is_vision_default=True),
    "kimi_k3": Wrapper(text="kimi_linear", vision=vision.kimi_vision, is_vision_default=True),
    "kimi_vl": Wrapper(text="deepseek_v3", vision=vision.kimi_vision, is_vision_default=True),
    "minimax_m3_vl": Wrapper(text="minimax_m3_vl_text", vision=vision.minimax_vision, is_vision_default=True),
    "step3p7": Wrapper(text="step3p5", names=FLAT, vision=vision.step_vision, is_vision_default=True),
    "internvl": Wrapper(text="qwen2", vision=vision.internvl_vision, is_vision_default=True),
    "idefics3": Wrapper(text="llama", names=("model.text_model.", "lm_head"), vision=vision.idefics3_vision),
    "smolvlm": Wrapper(text="llama", names=("model.text_model.", "lm_head"), vision=vision.idefics3_vision),
    "aya_vision": Wrapper(text="cohere2", vision=vision.aya_vision),
    "cohere2_vision": Wrapper(text="cohere2", vision=vision.aya_vision),
}
NESTED = ("text_config", "llm_config", "language_config")


def add_towers(parts: Parts, top: Config, wrapper: Wrapper, text_hidden: int) -> None:
    """The vision and audio tensors. A null section says: none."""
    for name, tower, by_default in (
        ("vision_config", wrapper.vision, wrapper.is_vision_default),
        ("audio_config", wrapper.audio, wrapper.is_audio_default),
    ):
        if tower is None:
            continue
        section = top.section(name)
        if section is None and by_default and not top.has(name):
            section = top.empty()
        if section is not None:
            tower(parts, section, text_hidden)


def add_plain_tower(parts: Parts, top: Config, model_type: str, text_hidden: int) -> None:
    """The tower of an unknown wrapper around a known text model, where it looks like a plain ViT."""
    for name in ("audio_config", "audio_encoder_config", "speech_config"):
        if top.section(name) is not None:
            raise top.fail(f"unknown model_type {model_type!r} with an {name}: its audio tower cannot be sized")
    section = top.section("vision_config")
    if section is not None:
        vision.plain_vision(parts, section, text_hidden)
