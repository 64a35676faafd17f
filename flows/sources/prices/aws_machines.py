"""Accelerators of Amazon's machine types: how many each size has. The price list counts NVIDIA's only, spot none.

Source: https://aws.amazon.com/ec2/instance-types/ (accelerated computing). Which card a family has is a matter of its
name (warehouse/seeds/gpu_alias.csv).
"""

import re

_ONE_TO_EIGHT = {
    **dict.fromkeys(("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"), 1),
    **{"12xlarge": 4, "24xlarge": 4, "48xlarge": 8},
}
COUNTS: dict[str, dict[str, int]] = {
    "p3": {"2xlarge": 1, "8xlarge": 4, "16xlarge": 8},
    "p3dn": {"24xlarge": 8},
    "p4d": {"24xlarge": 8},
    "p4de": {"24xlarge": 8},
    "p5": {"4xlarge": 1, "48xlarge": 8},
    "p5e": {"48xlarge": 8},
    "p5en": {"48xlarge": 8},
    "p6-b200": {"48xlarge": 8},
    "p6-b300": {"48xlarge": 8},
    "p6e-gb200": {"36xlarge": 4},
    "g4dn": {**dict.fromkeys(("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge"), 1), "12xlarge": 4, "metal": 8},
    "g4ad": {"xlarge": 1, "2xlarge": 1, "4xlarge": 1, "8xlarge": 2, "16xlarge": 4},
    "g5": _ONE_TO_EIGHT,
    "g5g": {**dict.fromkeys(("xlarge", "2xlarge", "4xlarge", "8xlarge"), 1), "16xlarge": 2, "metal": 2},
    "g6": _ONE_TO_EIGHT,
    "gr6": {"4xlarge": 1, "8xlarge": 1},
    "g6e": _ONE_TO_EIGHT,
    "g7e": {"2xlarge": 1, "4xlarge": 1, "8xlarge": 1, "12xlarge": 2, "24xlarge": 4, "48xlarge": 8},
    "inf1": {"xlarge": 1, "2xlarge": 1, "6xlarge": 4, "24xlarge": 16},
    "inf2": {"xlarge": 1, "8xlarge": 1, "24xlarge": 6, "48xlarge": 12},
    "trn1": {"2xlarge": 1, "32xlarge": 16},
    "trn1n": {"32xlarge": 16},
    "trn2": {"3xlarge": 1, "48xlarge": 16},
    "dl1": {"24xlarge": 8},
}
FAMILY = r"(?:p\d|gr?\d|trn\d|inf\d|dl\d)[a-z0-9-]*"
MACHINE = re.compile(rf"({FAMILY})\.([a-z0-9-]+)")


def is_accelerated(machine: str) -> bool:
    """Whether a machine type is of a family with accelerators, known or not."""
    return MACHINE.fullmatch(machine) is not None


def accelerators(machine: str) -> int | None:
    """The number of accelerators; None for a size that is not known."""
    family, _, size = machine.partition(".")
    return COUNTS.get(family, {}).get(size)
