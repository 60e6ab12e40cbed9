"""Names of GPUs in labels, SKUs and sentences, and the list of published cards."""

from __future__ import annotations

from decimal import Decimal
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.gpus import (
    UNREAD,
    candidates,
    known_sizes_gb,
    read_label,
    relatives_of,
    size_matching,
    specs,
)
from evaluator.units import GB, MIB

LABELS = [
    ("A100-80G-PCIe-NVLink", "A100", "PCIe", [80]),
    ("H100_SXM5", "H100", "SXM5", []),
    ("RTX6000Ada", "RTX 6000 Ada", None, []),
    ("RTX-6000-Ada", "RTX 6000 Ada", None, []),
    ("NVIDIA-H100-80GB-HBM3", "H100", None, [80]),
    ("Tesla-V100", "V100", None, []),
    ("MI300X-O", "MI300X", None, []),
    ("gpu_8x_h100_sxm5", "H100", "SXM5", []),
    ("8H100.80S.176V", "H100", None, []),
    ("RTXPRO6000", "RTX PRO 6000", None, []),
    ("RTXPRO6000S", "RTX PRO 6000", None, []),
    ("A100SXM4", "A100", "SXM4", []),
    ("crusoe_A100-80G-sxm4x8", "A100", "SXM4", [80]),
    ("A100-80GB-640GB", "A100", None, [80, 640]),
    ("n3-H100x8-NVLink", "H100", None, []),
    ("H100-NVLink 80GB", "H100", None, [80]),
    ("H100 NVL 94GB", "H100 NVL", "NVL", [94]),
    ("GB200 NVL72", "GB200", None, []),
    ("8 × NVIDIA H100 SXM5 80GB", "H100", "SXM5", [80]),
    ("8xH200", "H200", None, []),
    ("HGX node 8x H100", "H100", None, []),
    ("AMD EPYC 9354, 4 × NVIDIA L40S 48GB PCIe", "L40S", "PCIe", [48]),
    ("8x L40S 48GB; GPUs share PCIe Gen4 switches", "L40S", None, [48]),
    ("A100 80GB PCIe Gen4", "A100", "PCIe", [80]),
    ("H100 SXM5 with a PCIe SSD", "H100", "SXM5", []),
    ("8x H100 SXM5, 2 TB RAM", "H100", "SXM5", []),
    ("A100 80GB with 512 GB RAM", "A100", None, [80]),
    ("2 × 80GB A100", "A100", None, [80]),
    ("8x MI300X 1.5TB HBM3", "MI300X", None, [1500]),
    ("8x B200 1,536GB", "B200", None, [1536]),
    ("1x_L4_28V_124G", "L4", None, []),
    ("NVIDIA® RTX™ A6000", "RTX A6000", None, []),
    ("L40", "L40", None, []),
    ("A10", "A10", None, []),
    ("A10G", "A10G", None, []),
    ("RTX 3060 Ti", "RTX 3060 Ti", None, []),
    ("RTX_4070S_Ti", "RTX 4070 Ti SUPER", None, []),
    ("RTX 4090D", "RTX 4090 D", None, []),
    ("Quadro RTX 6000", "Quadro RTX 6000", None, []),
    ("RTX 6000", "Quadro RTX 6000", None, []),
    ("RTX A6000", "RTX A6000", None, []),
    ("A6000", "RTX A6000", None, []),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "RTX PRO 6000", None, []),
]

NO_LABELS = [
    "AMD EPYC 9354",
    "2x Intel Xeon E5-2680 v4",
    "Intel Xeon Platinum 8480+",
    "AMD Ryzen 9 7950X",
    "a 10 GB disk",
    "t4g.large",
    "RTX 5090 Laptop",
    "RTX 3080 Mobile",
    "Halyard X1",
    "3f2a100b-77c4",
    "",
]

LOOKALIKES = ["Н100 80GB", "L40ſ", "\u202eH100", "RTX 3060 Тi", "Ｈ100", "H100\u200bNVL"]

BAITS = ["RTX " * 250_000, "A100 " + "80GB-" * 200_000, "RTX_-" * 200_000, "9" * 10**6]

NAMES_OF_OTHER_THINGS = {"AWS G5", "H100 94GB", "3090", "4090", "5090", "6000 Ada"}
"""Aliases that need more than the words: a size, or the knowledge that a number is a GPU."""


@pytest.mark.parametrize(("text", "model", "form_factor", "sizes"), LABELS)
def test_a_label_says_model_form_factor_and_sizes(
    text: str, model: str, form_factor: str | None, sizes: list[int]
) -> None:
    label = read_label(text)
    assert (label.model, label.form_factor) == (model, form_factor)
    assert label.label_gb == tuple(map(Decimal, sizes))
    assert label.words in text


@pytest.mark.parametrize("text", NO_LABELS)
def test_other_names_are_no_gpu(text: str) -> None:
    assert read_label(text) == UNREAD


@pytest.mark.parametrize("text", LOOKALIKES)
def test_lookalike_and_hidden_characters_match_nothing(text: str) -> None:
    assert read_label(text).model is None


def test_every_model_reads_as_itself() -> None:
    assert {spec.model: read_label(spec.model).model for spec in specs()} == {
        spec.model: spec.model for spec in specs()
    }


def test_every_alias_of_a_graphics_card_reads_as_its_model() -> None:
    cards = [spec for spec in specs() if spec.vendor in ("NVIDIA", "AMD")]
    aliases = [(spec.model, alias) for spec in cards for alias in spec.aliases]
    readable = [pair for pair in aliases if pair[1] not in NAMES_OF_OTHER_THINGS]
    assert [(alias, read_label(alias).model) for model, alias in readable] == [
        (alias, model) for model, alias in readable
    ]


@pytest.mark.parametrize("bait", BAITS, ids=lambda bait: repr(bait[:8]))
def test_a_megabyte_of_bait_is_read_in_linear_time(bait: str) -> None:
    """Eight times the text takes about eight times the work; backtracking would take 64 times."""
    eighth, whole = _work(bait[: len(bait) // 8]), _work(bait)
    assert whole < 40 * eighth + 0.5


def _work(text: str) -> float:
    """Seconds of this process alone, so that a busy machine does not count."""

    def once() -> float:
        start = process_time()
        read_label(text)
        return process_time() - start

    return min(once() for _ in range(3))


@given(st.text(max_size=60))
def test_any_text_gives_words_that_stand_in_it(text: str) -> None:
    label = read_label(text)
    assert label.words in text
    assert (label.model is None) == (label.words == "")


@given(
    st.sampled_from([spec.model for spec in specs() if spec.vendor == "NVIDIA"]),
    st.sampled_from(["", "NVIDIA ", "8x ", "2 × NVIDIA ", "AMD EPYC 9354 64 vCPU, "]),
    st.sampled_from(["", " 64 vCPU", ", 512 GB DDR5", "-32-65536"]),
)
def test_words_around_a_model_do_not_change_it(model: str, before: str, after: str) -> None:
    assert read_label(before + model + after).model == model


def test_a_suffix_that_the_list_does_not_know_is_another_card() -> None:
    assert read_label("RTX 5090 D").model is None
    assert read_label("RTX 3090 Super").model is None


def test_relatives_are_the_cards_that_short_names_are_confused_with() -> None:
    assert relatives_of("H100") == ("H100 NVL",)
    assert "RTX 3060" in relatives_of("RTX 3060 Ti")
    assert relatives_of("L40S") == ()


def test_every_card_has_a_source_and_a_unique_id() -> None:
    ids = [spec.id for spec in specs()]
    assert len(ids) == len(set(ids))
    assert all(spec.source and spec.label_gb > 0 for spec in specs())


def test_every_driver_report_is_near_its_label() -> None:
    """A typing slip in the list would make every fit of that card wrong."""
    reported = [spec for spec in specs() if spec.driver_reported_mib]
    assert [
        spec.id
        for spec in reported
        if size_matching(spec.model, (spec.driver_reported_mib or 0) * MIB) != spec.label_gb
    ] == []


def test_sizes_of_a_model_are_ascending() -> None:
    assert known_sizes_gb("A100") == (40, 80)
    assert known_sizes_gb("no such card") == ()


def test_a_size_between_two_cards_is_no_size() -> None:
    assert size_matching("A100", 60 * GB) is None


def test_candidates_narrow_by_size_and_form() -> None:
    cards = candidates("A100", label_gb=80, form_factor="SXM")
    assert [card.id for card in cards] == ["a100-sxm4-80"]


def test_words_that_exclude_every_card_are_set_aside() -> None:
    assert len(candidates("A100", label_gb=23)) == len(candidates("A100"))
