import string

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from fitmart.flows.cli import cli
from fitmart.flows.gpu_names import RESOLVED_SCHEMA, bundled_resolver, resolve
from fitmart.warehouse.snapshot import read_seed

GPUS = read_seed("gpu")


def one(name, memory_gb=None):
    return resolve([(name, memory_gb)]).row(0, named=True)


NAMES = [
    # What nvidia-smi, npu-smi and rocm-smi print.
    ("NVIDIA H100 80GB HBM3", None, "nvidia-h100-sxm"),  # the PCIe card has HBM2e
    ("NVIDIA H100 PCIe", None, "nvidia-h100-pcie"),
    ("NVIDIA H100 NVL", None, "nvidia-h100-nvl"),
    ("NVIDIA A100-SXM4-80GB", None, "nvidia-a100-sxm-80gb"),
    ("Tesla V100-PCIE-16GB", None, "nvidia-v100-pcie-16gb"),
    ("Tesla V100S-PCIE-32GB", None, "nvidia-v100s-pcie-32gb"),
    ("NVIDIA B300 SXM6 AC", None, "nvidia-b300-sxm"),
    ("NVIDIA H20-3e", None, "nvidia-h20-141gb"),
    (
        "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        None,
        "nvidia-rtx-pro-6000-blackwell-max-q",
    ),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", None, "nvidia-rtx-pro-6000-blackwell-server"),
    ("NVIDIA RTX 5880 Ada Generation", None, "nvidia-rtx-5880-ada"),
    ("NVIDIA GeForce RTX 5090 Laptop GPU", None, "nvidia-rtx-5090-laptop"),
    ("Ascend 910B3", 64, "huawei-ascend-910b-64gb"),
    ("AMD Instinct MI300X OAM", None, "amd-mi300x"),
    # What providers write.
    ("RTXPRO6000S", None, "nvidia-rtx-pro-6000-blackwell-server"),
    ("RTX Pro 6000 WE 96GB PCIe", 96, "nvidia-rtx-pro-6000-blackwell"),
    ("geforcertx4090-pcie-24gb", None, "nvidia-rtx-4090"),
    ("RTX 4070S Ti", 16, "nvidia-rtx-4070-ti-super"),
    ("4080S", None, "nvidia-rtx-4080-super"),
    ("RTX_6000Ada", 48, "nvidia-rtx-6000-ada"),
    ("A100-80G-PCIe-NVLink", None, "nvidia-a100-pcie-80gb"),
    ("HGX H200", None, "nvidia-h200-sxm"),
    ("H200 PCIe", None, "nvidia-h200-nvl"),  # the only PCIe card of the H200
    ("Q RTX 6000", None, "nvidia-quadro-rtx-6000"),
    ("MI-308X", 192, "amd-mi308x"),
    ("GAUDI2", None, "intel-gaudi-2"),
    ("HL-205", 32, "intel-gaudi-1"),
    ("tpu-v5litepod", None, "google-tpu-v5e"),
    ("MacBook Pro M4 Max 128GB", None, "apple-m4-max-128gb"),
    ("DGX Spark (GB10 128GB)", None, "nvidia-dgx-spark"),
    ("L40S (graphics mode)", None, "nvidia-l40s"),
    ("A4 Nvidia B200 (1 gpu slice) running in Americas", 180, "nvidia-b200-sxm"),
]
MACHINES = [  # what the provider documents
    ("p5.48xlarge", 80, "nvidia-h100-sxm"),
    ("ml.p4d.24xlarge", None, "nvidia-a100-sxm-40gb"),
    ("g6e.xlarge", 44.7, "nvidia-l40s"),
    ("a2-highgpu-1g", None, "nvidia-a100-sxm-40gb"),
    ("a3-ultragpu-8g", None, "nvidia-h200-sxm"),
    ("Standard_ND96isr_H100_v5", None, "nvidia-h100-sxm"),
    ("Standard_NC40ads_H100_v5", None, "nvidia-h100-nvl"),
    ("BM.GPU4.8", None, "nvidia-a100-sxm-40gb"),
    ("1x-A100_PCIE-32-65536", 80, "nvidia-a100-pcie-80gb"),
    ("gpu-mi300x8-1536gb", 192, "amd-mi300x"),
    ("gpu-l40s-d_2gpu-64vcpu-384gb", 48, "nvidia-l40s"),
    ("2x28v238g_NVIDIA_GeForce_RTX_5090_32G_SECURE", 31.84, "nvidia-rtx-5090"),
]


@pytest.mark.parametrize(("name", "memory_gb", "gpu_id"), NAMES + MACHINES)
def test_a_name_that_says_everything_is_certain(name, memory_gb, gpu_id):
    got = one(name, memory_gb)
    assert (got["gpu_id"], got["is_assumed"]) == (gpu_id, False), got["reason"]


ASSUMED = [
    ("H100", None, "nvidia-h100-pcie", "form factor and memory"),  # slower than the SXM part
    ("NVIDIA H100", 80, "nvidia-h100-pcie", "form factor"),
    ("A100", 80, "nvidia-a100-pcie-80gb", "form factor"),
    ("A100 SXM4", None, "nvidia-a100-sxm-40gb", "memory"),  # the smaller
    ("V100", 32, "nvidia-v100-sxm2-32gb", "form factor"),  # a PCIe card of 32 GB exists, outside the catalog
    ("RTX 4060 Ti", None, "nvidia-rtx-4060-ti-16gb", "memory"),
    ("8RTXPRO6000.240V", None, "nvidia-rtx-pro-6000-blackwell-max-q", "edition"),
    ("GH200", None, "nvidia-gh200-96gb", "memory"),
    ("GB200 NVL72", None, "nvidia-gb200", "rack"),
    ("A16", 16, "nvidia-a16", "four GPUs"),
    ("gpu-h200x8-1128gb", None, "nvidia-h200-nvl", "total"),
    ("8x A100 SXM4", 640, "nvidia-a100-sxm-80gb", "total"),
    ("A100 80GB SXM (Community · PCIe)", None, "nvidia-a100-pcie-80gb", "form factor"),
]


@pytest.mark.parametrize(("name", "memory_gb", "gpu_id", "why"), ASSUMED)
def test_what_stays_open_takes_the_lesser_card_and_says_so(name, memory_gb, gpu_id, why):
    got = one(name, memory_gb)
    assert (got["gpu_id"], got["is_assumed"]) == (gpu_id, True)
    assert why in got["reason"]
    assert gpu_id in got["candidates"].split("|")


MEMORY_DECIDES = [
    ("H100", 94, "nvidia-h100-nvl"),
    ("H100 PCIe", 94, "nvidia-h100-nvl"),  # an NVL card is a PCIe card
    ("A100-sxm4", 40, "nvidia-a100-sxm-40gb"),
    ("H20", 141, "nvidia-h20-141gb"),
    ("GH200", 144, "nvidia-gh200-144gb"),
    ("RTX 6000", 24, "nvidia-quadro-rtx-6000"),
    ("RTX 6000", 48, "nvidia-rtx-6000-ada"),
    ("RTX 5000", 16, "nvidia-quadro-rtx-5000"),
    ("RTX 5000", 32, "nvidia-rtx-5000-ada"),
    ("RTX PRO 5000", 72, "nvidia-rtx-pro-5000-72gb"),
    ("Mac Studio M3 Ultra", 512, "apple-m3-ultra-512gb"),
]


@pytest.mark.parametrize(("name", "memory_gb", "gpu_id"), MEMORY_DECIDES)
def test_memory_decides_where_the_name_does_not(name, memory_gb, gpu_id):
    assert one(name, memory_gb)["gpu_id"] == gpu_id


NONE = [
    # Shares of a GPU.
    ("A100 1g.5gb", None, "MIG"),
    ("B300 MIG slice", None, "MIG"),
    ("NVIDIA A10-4Q", None, "vGPU"),
    ("H100_MIG_3g.40gb", None, "MIG"),
    ("GRID A100D-80C", None, "vGPU"),
    ("nvidia-tesla-t4-vws", None, "vGPU"),
    ("Standard_NV6ads_A10_v5", 24, "share"),  # one sixth, whatever the metadata say
    ("vcg-a100-1c-6g-4vram", None, "share"),
    ("g6f.large", None, "shares"),
    ("A10", 4, "share"),
    ("A100 80GB", 10, "share"),
    # Modified cards and other variants.
    ("RTX 4090 (48 GB mod)", None, "modified"),
    ("RTX 4090", 49140 / 1024, "modified"),
    ("RTX 2080 Ti 22GB", None, "modified"),
    ("RTX 5090 D v2", None, "not in the catalog"),
    ("RTX 3080", 12, "not in the catalog"),
    ("RTX4070", 16, "modified"),  # a 4070 Ti Super stored as 4070
    ("RTX3060", 8, "not in the catalog"),  # a 3060 Ti, or the 3060 of 8 GB
    ("RTX4060", 16, "modified"),  # a 4060 Ti
    ("RTX 4060 Ti", 8, "not in the catalog"),
    ("RTX 3070 Ti", 8, "not in the catalog"),
    ("Quadro RTX 4000", None, "not in the catalog"),
    ("RTX4000 (8 GB)", 8, "not in the catalog"),
    ("g3-l40s-large", 48, "disagree"),  # listed as L40 and as L40S
    # Names that mean no card, or several.
    ("RTX 5090 Pro", None, "host's own"),
    ("RTX 5090 Hyper", None, "no known"),
    ("RTX 3070 Laptop", None, "suffix"),
    ("A6000 Ada", None, "suffix"),  # the RTX A6000 is not the RTX 6000 Ada
    ("A100X", 80, "no known"),
    ("A910X", 48, "no known"),
    ("GPU H-e", 141, "hides"),
    ("RTX 6000", None, "one name for"),
    ("RX 7900", None, "suffix"),
    ("H100 and A100", None, "several"),
    ("K80", 12, "not in the catalog"),
    ("m4.xlarge", None, "without a GPU"),
    ("t4g.micro", None, "without a GPU"),
    ("a2-standard-4", None, "no known"),
    ("", None, "no name"),
    ("  ", 80, "no name"),
    ("GPU", None, "no known"),
]


@pytest.mark.parametrize(("name", "memory_gb", "why"), NONE)
def test_unknown_shared_and_modified_cards_resolve_to_none(name, memory_gb, why):
    got = one(name, memory_gb)
    assert (got["gpu_id"], got["is_assumed"]) == (None, False)
    assert why in got["reason"]


@pytest.mark.parametrize(
    ("name", "memory_gb", "gpu_id"),
    [("NVIDIA B300", 180, "nvidia-b300-sxm"), ("MI325X", 288, "amd-mi325x"), ("NVIDIA L40", 40, "nvidia-l40")],
)
def test_a_slightly_wrong_memory_keeps_the_card_and_is_said(name, memory_gb, gpu_id):
    got = one(name, memory_gb)
    assert got["gpu_id"] == gpu_id
    assert f"memory stated as {memory_gb} GB" in got["reason"]


@pytest.mark.parametrize(
    ("name", "memories"),
    [
        ("L40S", (44.7, 45, 46068 / 1024, 48, 51.5)),
        ("L4", (22, 22.4, 24)),
        ("B200", (178, 180, 183, 192)),
        ("B300", (262, 268, 269, 288)),
        ("H100 SXM", (79.65, 80, 85.9)),
        ("H200 SXM", (140, 141, 143)),
    ],
)
def test_gib_gb_and_what_the_driver_shows_are_one_memory(name, memories):
    assert {one(name, memory_gb)["reason"] for memory_gb in memories} == {"name and memory"}


def test_a_gpu_id_is_its_own_name():
    got = resolve([(gpu_id.upper(), None) for gpu_id in GPUS["gpu_id"]])
    assert got["gpu_id"].to_list() == GPUS["gpu_id"].to_list()
    assert not got["is_assumed"].any()


def test_every_card_is_found_by_its_catalog_name_and_memory():
    """All but one: the plain RTX 4000 Ada shares its name with the slower SFF card."""
    got = resolve(list(zip(GPUS["name"], GPUS["marketed_memory_gb"], strict=True)))
    missed = [a for a, b in zip(GPUS["gpu_id"], got["gpu_id"], strict=True) if a != b]
    assert missed == ["nvidia-rtx-4000-ada"]


@given(
    case=st.sampled_from(NAMES),
    fold=st.sampled_from([str.upper, str.lower, str.title, lambda s: s.replace(" ", "_"), lambda s: f"  {s}  "]),
    count=st.sampled_from(["", "2x ", "8x "]),
)
def test_case_separators_and_counts_do_not_matter(case, fold, count):
    name, memory_gb, gpu_id = case
    assert one(count + fold(name), memory_gb)["gpu_id"] == gpu_id


@given(name=st.text(alphabet=string.printable + "é日·", max_size=40), memory_gb=st.none() | st.floats(0, 1e6))
def test_no_text_is_an_error(name, memory_gb):
    got = one(name, memory_gb)
    assert got["reason"]
    assert got["gpu_id"] is not None or not got["is_assumed"]


def test_rows_come_back_in_order_and_typed():
    got = resolve([("L4", None), ("?", None), ("L4", None)])
    assert got.schema == RESOLVED_SCHEMA
    assert got["gpu_id"].to_list() == ["nvidia-l4", None, "nvidia-l4"]
    assert resolve([]).schema == RESOLVED_SCHEMA


@pytest.mark.parametrize(
    ("name", "machine", "memory_gb", "gpu_id", "is_assumed", "is_conflict"),
    [
        ("H100", "p5.48xlarge", 80, "nvidia-h100-sxm", False, False),  # the machine says what the name leaves out
        ("H100", "NC40ads_H100_v5", 94, "nvidia-h100-nvl", False, False),
        ("A10", "Standard_NV6ads_A10_v5", 24, None, False, False),  # a share, tagged as one GPU (skypilot#3708)
        ("H100_NVL", "n3-H100x8-NVLink", 80, "nvidia-h100-pcie", True, True),  # a bridged PCIe card, by its 80 GB
        ("A100_80G_SXM4", "n3-A100x1", 80, "nvidia-a100-sxm-80gb", True, True),
        ("H100", "zz.large", 80, "nvidia-h100-pcie", True, False),
        ("B300 MIG", "b300x1", None, None, False, False),
        ("L4", None, 24, "nvidia-l4", False, False),
    ],
)
def test_an_offer_is_named_by_its_gpu_and_its_machine_type(name, machine, memory_gb, gpu_id, is_assumed, is_conflict):
    answer, conflict = bundled_resolver().resolve_offer(name, machine, memory_gb)
    assert (answer.gpu_id, answer.is_assumed, conflict) == (gpu_id, is_assumed, is_conflict)


def run(*arguments, **more):
    return CliRunner().invoke(cli, ["gpu-names", *arguments], **more)


def test_the_command_answers_row_by_row(tmp_path):
    file = tmp_path / "names.csv"
    file.write_text('raw_name,memory_gb\n"H100, PCIe",80\nfoo,\n', encoding="utf-8")
    done = run(str(file), "--format", "csv")
    assert done.exit_code == 0
    assert done.output.splitlines() == [
        "raw_name,memory_gb,gpu_id,is_assumed,reason,candidates",
        '"H100, PCIe",80.0,nvidia-h100-pcie,false,name and memory,nvidia-h100-pcie',
        'foo,,,false,no known GPU in the name,""',
    ]
    assert run(str(file), "--format", "json").output.startswith('[{"raw_name":"H100, PCIe"')
    assert "nvidia-h100-pcie" in run(str(file)).output
    assert "nvidia-l4" in run("-", "--format", "csv", input="raw_name\nL4\n").output


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"name\nH100\n", "no column raw_name"),
        (b"", "no column raw_name"),
        (b"raw_name,memory_gb\nH100,much\n", "line 2: memory_gb is 'much'"),
        (b"raw_name,memory_gb\nH100,-1\n", "line 2"),
        (b"raw_name\n\xff\xfe\n", "UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_gets_one_line(tmp_path, content, message):
    file = tmp_path / "names.csv"
    file.write_bytes(content)
    error = run(str(file)).exception
    assert message in str(error)
    assert "\n" not in str(error)


def test_a_missing_file_is_wrong_use():
    assert run("no-such-file.csv").exit_code == 2
