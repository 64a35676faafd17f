"""Google's machine types with GPUs: the parts that each is billed by.

Source: https://cloud.google.com/compute/docs/accelerator-optimized-machines. Local disks that some bring along are
billed apart and left out. `cores` and `memory` begin the descriptions of the SKUs for one vCPU and one GiB.
"""

from dataclasses import dataclass

A100 = "Nvidia Tesla A100 GPU"
A100_80GB = "Nvidia Tesla A100 80GB GPU"
H100 = "Nvidia H100 80GB GPU"
H100_MEGA = ("Nvidia H100 80GB Mega GPU", "Nvidia H100 80GB Plus GPU")
L4 = "Nvidia L4 GPU"
# What the machine API calls them: https://cloud.google.com/compute/docs/gpus.
ACCELERATORS = {
    A100: "nvidia-tesla-a100",
    A100_80GB: "nvidia-a100-80gb",
    H100: "nvidia-h100-80gb",
    **dict.fromkeys(H100_MEGA, "nvidia-h100-mega-80gb"),
    L4: "nvidia-l4",
    "Nvidia Tesla T4 GPU": "nvidia-tesla-t4",
    "Nvidia Tesla V100 GPU": "nvidia-tesla-v100",
    "Nvidia Tesla P100 GPU": "nvidia-tesla-p100",
}


@dataclass(frozen=True, slots=True)
class Machine:
    """A machine type: GPUs of one of `gpus` (the names that its SKU has had), vCPUs and GiB of `family`."""

    name: str
    gpus: tuple[str, ...]
    gpu_count: int
    family: str
    vcpus: int
    memory_gib: int


MACHINES = (
    *(Machine(f"a2-highgpu-{n}g", (A100,), n, "A2", 12 * n, 85 * n) for n in (1, 2, 4, 8)),
    Machine("a2-megagpu-16g", (A100,), 16, "A2", 96, 1360),
    *(Machine(f"a2-ultragpu-{n}g", (A100_80GB,), n, "A2", 12 * n, 170 * n) for n in (1, 2, 4, 8)),
    *(Machine(f"a3-highgpu-{n}g", (H100,), n, "A3", 26 * n, 234 * n) for n in (1, 2, 4, 8)),
    Machine("a3-megagpu-8g", H100_MEGA, 8, "A3Plus", 208, 1872),
    *(
        Machine(f"g2-standard-{vcpus}", (L4,), gpus, "G2", vcpus, 4 * vcpus)
        for vcpus, gpus in ((4, 1), (8, 1), (12, 1), (16, 1), (24, 2), (32, 1), (48, 4), (96, 8))
    ),
)
# Sold by the eighth, host included (skypilot-org/skypilot#8125): a machine is eight slices.
SLICES = {"A4 Nvidia B200 (1 gpu slice)": ("a4-highgpu-8g", 8)}
