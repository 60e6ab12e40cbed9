"""Everything that names a person, a host or a device goes; every fact of the links stays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluator.evidence import UnreadableEvidence, read_evidence, scrub
from evaluator.sightings import sight
from tests.evaluator.pasted import alike, benchmark_text, cells, matrix_text, peer_text

NAMES: dict[str, tuple[str, str]] = {
    "a folder of a volume": ("/workspace/annika/run.sh", "annika"),
    "a mounted share": ("python /mnt/annika/train.py", "annika"),
    "a folder of a mounted volume": ("ls /mnt/nvme0/annika/x", "annika"),
    "a scratch folder": ("cd /scratch/p1234-annika", "annika"),
    "a bare InfiniBand GUID": ("Node GUID 0x506b4b0300ca3f2e", "506b4b"),
    "a port GUID with colons": ("port guid 506b:4b03:00ca:3f2e", "4b03"),
    "a board part number": ("    Board Part Number : 692-2G520-0200-000", "2G520"),
    "a GPU part number": ("    GPU Part Number : 2330-885-A1", "2330-885"),
    "a serial in capitals": ("    ASIC_SERIAL: 0x4C7A1F2233445566", "4C7A1F"),
    "a serial in JSON": ('"product_serial": "692244001234"', "692244"),
    "a FRU": ("    FRU_ID: 113-AMDG511200", "AMDG51"),
    "a MAC": ("link/ether 0c:42:a1:8b:7c:6d brd", "42:a1"),
    "a MAC with dots": ("vlan 0c42.a18b.7c6d", "a18b"),
    "an IPv6": ("NET/Socket : Using [0]eth0:2001:db8:85a3::8a2e:370:7334<0>", "85a3"),
    "a scoped IPv6": ("fe80::5054:ff:fe12:3456%eth0", "5054"),
    "an IPv4": ("bootstrap : Using eth0:192.168.17.44<0>", "192.168"),
    "an e-mail": ("#SBATCH --mail-user=annika.k@example.org", "annika"),
    "a pod of a deployment": ("exec vllm-llama-7d9f8b6c5d-x2k4q -- nvidia-smi", "7d9f8b"),
    "a pod by its kind": ("pod/annika-trainer-0 created", "annika"),
    "a pod's prompt": ("root@vllm-llama-7d9f8b6c5d-x2k4q:/app# nvidia-smi", "7d9f8b"),
    "an AWS host": ("ip-10-17-203-44.ec2.internal", "203-44"),
    "a bare AWS host": ("srun: ip-10-17-203-44 done", "203-44"),
    "an AWS instance": ("instance i-0a1b2c3d4e5f67890", "0a1b2c"),
    "an inner domain": ("gpu17.rack4.corp answered", "rack4"),
    "a Windows home": ("C:\\Users\\Annika K\\Desktop>", "Annika"),
    "a Windows home with slashes": ("C:/Users/Annika/x.txt", "Annika"),
    "a Windows drive": ("D:\\annika\\logs\\topo.txt", "annika"),
    "a Windows share": ("\\\\fileserver9\\topo\\x.txt", "fileserver9"),
    "what lies in a Windows share": ("\\\\host-1\\topo\\annika.txt", "annika"),
    "a folder of a mounted server": ("/mnt/nas/annika/models/x", "annika"),
    "a job's user": ("SLURM_JOB_USER=annika", "annika"),
    "a job's account": ("SLURM_JOB_ACCOUNT=annika-lab", "annika"),
    "a job's host": ("SLURM_SUBMIT_HOST=login7.example.edu", "login7"),
    "a job's nodes": ("SLURM_STEP_NODELIST=rack4-n[01-04]", "rack4"),
    "a job's address": ("SLURM_TOPOLOGY_ADDR=rack4n7", "rack4n7"),
    "a user in JSON": ('"user": "annika", "device": 0', "annika"),
    "an account of a domain": ("annika@lab@gpu-box:~$ nvidia-smi", "annika"),
    "a GPU's UUID": ("GPU-5fbd1c7e-3a1b-9c2d-4e5f-60718293a4b5", "5fbd1c7e"),
}

FACTS = {
    "a bus id": "0000:19:00.0",
    "a long bus id": "00000000:1B:00.0",
    "a class": "GPU0\t X \tNV18\tPXB",
    "a network device": "NIC0: mlx5_0",
    "a RoCE device": "NIC1: rocep145s0f1",
    "a card": "NVIDIA H100 80GB HBM3",
    "a form factor": "NVIDIA A100-SXM4-80GB",
    "a rate": "\t Link 0: 26.562 GB/s",
    "a width": "                Max                       : 16x",
    "a version": "Driver Version: 550.54.15",
    "an XML class": '<pci busid="0000:0f:00.0" class="0x030200" link_speed="32.0 GT/s PCIe">',
    "a device of a run": "#  Rank  3 Group  0 Pid      0 on host-1 device  3 [0000:5d:00] H200",
    "a command": "/opt/nccl-tests/build/all_reduce_perf -b 8 -e 8G",
    "a command of a volume": "/workspace/nccl-tests/build/all_gather_perf -b 8",
    "a road": "Channel 00/0 : 0[0] -> 1[1] via NET/IB/0/GDRDMA",
    "affinity": "0-47,96-143",
    "a mask": "00000000,00000000,0000ffff",
    "an AMD table": "0000:0c:00.0 XGMI         XGMI",
}


@pytest.mark.parametrize("name", NAMES)
def test_each_kind_of_name_goes(name: str) -> None:
    text, secret = NAMES[name]
    clean = scrub(text)
    assert secret.lower() not in clean.text.lower()
    assert clean.removed
    assert scrub(clean.text).text == clean.text


@pytest.mark.parametrize("name", FACTS)
def test_each_kind_of_fact_stays(name: str) -> None:
    assert scrub(FACTS[name]).text == FACTS[name]


OUTPUTS = (
    matrix_text(alike(8, "NV18"), ["0"] * 4 + ["1"] * 4, {"NIC0": ["PXB"] * 8}),
    matrix_text(cells([(0, 1), (2, 3)], "NV4", "PHB", "SYS", ["0", "0", "1", "1"])),
    peer_text(4, "CNS"),
    benchmark_text(8, [(1 << 20, 21.0), (8 << 30, 470.0)]),
    benchmark_text(16, [(8 << 30, 90.0)], nodes=2),
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-5fbd1c7e-3a1b-9c2d-4e5f-60718293a4b5)\n"
    "\t Link 0: 26.562 GB/s\n\t Link 1: <inactive>\n",
)


def shown(text: str) -> object:
    """Topology and facts; the words of an error where nothing can be read."""
    try:
        seen = sight(read_evidence(text))
    except UnreadableEvidence as refused:
        return refused.trouble
    return (seen.topology, seen.facts, seen.gpu_counts, seen.gpu_models)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(
        st.sampled_from([*OUTPUTS, *(f"{text}\n" for text, _ in NAMES.values())]),
        min_size=1,
        max_size=5,
    )
)
def test_a_cleaned_paste_says_the_same_and_cleaning_it_again_changes_nothing(
    parts: list[str],
) -> None:
    text = "".join(parts)
    clean = scrub(text).text
    assert scrub(clean).text == clean
    assert shown(clean) == shown(text)
    held = [secret for words, secret in NAMES.values() if f"{words}\n" in parts]
    assert not [secret for secret in held if secret.lower() in clean.lower()]
