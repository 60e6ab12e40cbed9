"""What must not be stored, and that scrubbing twice changes nothing."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from evaluator.evidence import scrub

SECRET = "hf_" + "abcdefghij0123456789"


@pytest.mark.parametrize(
    ("text", "gone", "kept"),
    [
        ("alice@gpu-box-7:~$ nvidia-smi topo -m", ("alice", "gpu-box-7"), "nvidia-smi topo -m"),
        ("gpu-box-7:812:913 [3] NCCL INFO x", ("gpu-box-7", "812"), "[3] NCCL INFO x"),
        ("#  Rank  0 Pid 4711 on n17 device  0 [0x1a] NVIDIA H100", ("n17", "4711"), "NVIDIA H100"),
        ("/home/alice/run.sh", ("alice",), "run.sh"),
        ("Using [0]eth0:10.1.2.3<0>", ("10.1.2.3",), "eth0"),
        ("inet6 fe80::a2b:3c4d/64", ("a2b",), "inet6"),
        ("ether ec:0d:9a:8b:7c:6d", ("ec:0d",), "ether"),
        ("    Serial Number    : 1562523001", ("1562523001",), "Serial Number"),
        ("GPU-a1b2c3d4-0000-1111-2222-333344445555", ("a1b2c3d4",), "GPU-"),
        (f"export HF_TOKEN={SECRET} NCCL_DEBUG=INFO", (SECRET,), "NCCL_DEBUG=INFO"),
        (f"Authorization: Bearer {SECRET}", (SECRET,), "Authorization"),
        ("jdoe@box-77:/raid/jdoe/run$ ls", ("jdoe", "box-77"), "/raid/user/run"),
        ("C:\\Users\\Jane Doe\\Desktop> nvidia-smi", ("Jane", "Doe"), "Desktop> nvidia-smi"),
        ("ssh alice@203.0.113.77 -p 22", ("alice", "203."), "-p 22"),
        ("python train.py --user bob --password: hunter2x", ("bob", "hunter2x"), "train.py"),
        ("/mnt/users/carol/run.sh ~dora/x", ("carol", "dora"), "run.sh"),
        ("Username : carol", ("carol",), "Username"),
        ("user=carol NCCL_DEBUG=INFO", ("carol",), "NCCL_DEBUG=INFO"),
        ('nodename="secret-node-9"', ("secret-node",), "nodename"),
        ("DMIProductName=X HostName=gpu77 Architecture=x86_64", ("gpu77",), "Architecture=x86_64"),
        ("OS: Linux gpu77 5.15.0-91-generic x86_64", ("gpu77",), "5.15.0-91-generic"),
        ("MASTER_ADDR: node-alpha-1", ("alpha",), "MASTER_ADDR"),
        ("node_guid: 0c42a10300aabbcc", ("0c42a1",), "node_guid"),
        ('"env": ["A=b", "C=d"], "pid": 77', ("A=b", "77"), '"env"'),
        ('"args": ["/home/z/all_reduce_perf", "-b"]', ("/home/z", "-b"), "all_reduce_perf"),
    ],
)
def test_what_names_somebody_goes_and_the_rest_stays(
    text: str, gone: tuple[str, ...], kept: str
) -> None:
    clean = scrub(text)
    assert not [word for word in gone if word in clean.text]
    assert kept in clean.text
    assert clean.removed
    assert scrub(clean.text).text == clean.text


LOG = "box-a1:1:2 [0] NCCL INFO x\nbox-b2:1:2 [0] NCCL INFO x\nbox-a1:1:3 [0] NCCL INFO box-a1\n"


def test_hosts_keep_a_number_each() -> None:
    clean = scrub(LOG)
    assert clean.text.split("\n")[0].startswith("host-1:")
    assert clean.text.split("\n")[1].startswith("host-2:")
    assert clean.text.split("\n")[2].endswith("host-1")


@pytest.mark.parametrize(
    "text",
    [
        "0000:0c:00.0 XGMI",
        "Driver Version: 550.54.15",
        "00000000,0000ffff",
        "24-47,72-95",
        "rocep145s0",
    ],
)
def test_what_readers_need_stays(text: str) -> None:
    assert scrub(text).text == text


@example("0@.@0")
@example("ann@corp@box-7:~$ nvidia-smi")
@given(st.text(alphabet='ab01-:@./=" \n[]{}HOSTuserTOKENKEY', max_size=80))
def test_scrubbing_twice_changes_nothing(text: str) -> None:
    once = scrub(text).text
    assert scrub(once).text == once
