from dataclasses import dataclass


@dataclass
class Quantization:
    precision_id: str = "bf16"
    method: str | None = None
    kv_cache_scheme: str | None = None

    def apply(self, tensors):
        return tensors


def read_quantization(top, c, quant, *, native):
    return Quantization()
