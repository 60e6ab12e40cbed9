"""Pasting over HTTP: preview, confirm, and whose evidence is whose."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from marketplace.models import Evidence, Fact, Listing, RentedMachine
from tests.marketplace.test_evidence import CUT, PAIRS, SWITCHED, put, sample
from tests.pages.catalog import make_listing, make_source

pytestmark = pytest.mark.django_db


@pytest.fixture
def eight() -> Listing:
    return make_listing(make_source())


@pytest.fixture
def ada() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def mine(ada: User) -> Client:
    return signed_in(ada)


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def text(client: Client, address: str, status: int = 200) -> str:
    response = client.get(address)
    assert response.status_code == status
    return " ".join(response.content.decode().split())


def paste_address(row: Listing) -> str:
    return f"/listings/{row.pk}/evidence/"


def keep_address(row: Listing) -> str:
    return f"{paste_address(row)}keep/"


def confirm(client: Client, row: Listing, **fields: object) -> object:
    data = {"text": sample(PAIRS), "ran_by": "renter", **fields}
    return client.post(keep_address(row), data)


def test_a_stranger_sees_the_commands_and_is_invited_to_sign_in(
    client: Client, eight: Listing
) -> None:
    page = text(client, eight.get_absolute_url())
    assert "nvidia-smi topo -m" in page
    assert f'href="/login/?next=/listings/{eight.pk}/"' in page
    assert "Paste or upload" not in page
    assert "How are the GPUs of this very machine joined?" in page
    assert "19.92 USD" in page


@pytest.mark.parametrize("address", [paste_address, keep_address])
def test_a_stranger_cannot_paste(client: Client, eight: Listing, address: object) -> None:
    response = client.post(address(eight), {"text": sample(PAIRS)})  # type: ignore[operator]
    assert response.status_code == 302
    assert response["Location"].startswith("/login/?next=")
    assert not Evidence.objects.exists()


def test_a_preview_shows_cleaned_text_and_facts_and_stores_nothing(
    mine: Client, eight: Listing
) -> None:
    response = mine.post(paste_address(eight), {"text": sample(PAIRS), "ran_by": "renter"})
    page = response.content.decode()
    assert response.status_code == 200
    assert "NVLink between pairs" in page
    assert "GPU-00000000-1111" not in page
    assert "gpu-node-17" not in page
    assert "Keep these facts" in page
    assert not Evidence.objects.exists()
    assert not RentedMachine.objects.exists()


def test_a_file_is_read_like_a_paste(mine: Client, eight: Listing) -> None:
    file = SimpleUploadedFile("topo.txt", sample(PAIRS).encode())
    response = mine.post(paste_address(eight), {"file": file, "ran_by": "renter"})
    assert "Keep these facts" in response.content.decode()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"text": "hello"}, "Nothing in this text can be believed"),
        ({"text": ""}, "Paste an output or choose a file."),
        ({"text": "x" * 1_000_001}, "1,000,000 can be read"),
        ({"text": "x", "ran_by": "catalog"}, "catalog is not one of the available choices"),
        ({"text": "x", "ran_at": "2999-01-01"}, "has not come yet"),
        ({"file": SimpleUploadedFile("x", b"x" * 1_000_001)}, "1,000,000 can be read"),
    ],
)
def test_what_cannot_be_used_is_said(
    mine: Client, eight: Listing, fields: dict[str, object], words: str
) -> None:
    response = mine.post(paste_address(eight), {"ran_by": "renter", **fields})
    assert response.status_code == 422
    assert words in response.content.decode()
    assert not Evidence.objects.exists()


def test_confirmed_facts_judge_the_page_of_their_uploader(
    mine: Client, client: Client, eight: Listing
) -> None:
    response = confirm(mine, eight)
    assert response.status_code == 302  # type: ignore[attr-defined]
    page = text(mine, eight.get_absolute_url())
    assert "The evidence and the catalog disagree." in page
    assert "yours alone, no curator has accepted it" in page
    assert "measured NVLink between pairs against declared NVSwitch between all GPUs" in page
    assert "contradicted" in text(mine, f"{eight.get_absolute_url()}?workload=serve-llama-70b")
    assert "No pair of GPUs was seen" in text(client, eight.get_absolute_url())


def test_the_server_reads_the_confirmed_text_itself(mine: Client, eight: Listing) -> None:
    """A field that claims a grade or a state is no field of the form."""
    confirm(mine, eight, grade="3", state="accepted", uploaded_by="1", verified="yes", facts="[]")
    kept = Evidence.objects.get()
    assert kept.state == "pending"
    assert set(kept.facts.values_list("grade", flat=True)) == {2}
    assert "gpu-node-17" not in kept.cleaned_text


def test_a_mismatch_is_shown_before_and_after(mine: Client, eight: Listing) -> None:
    other = sample("2-gpus-nvlink")
    shown = mine.post(paste_address(eight), {"text": other, "ran_by": "renter"})
    assert "does not match the listing" in shown.content.decode()
    confirm(mine, eight, text=other)
    page = text(mine, eight.get_absolute_url())
    assert "kept as a conflict, raises nothing" in page
    assert "No pair of GPUs was seen" in page


def test_a_second_paste_joins_the_machine_that_is_chosen(
    mine: Client, ada: User, eight: Listing
) -> None:
    first = put(eight, ada, SWITCHED)
    confirm(mine, eight, text=sample(CUT), machine=first.machine_id)
    assert RentedMachine.objects.count() == 1


def test_nobody_joins_a_machine_of_another(mine: Client, eight: Listing) -> None:
    other = put(eight, User.objects.create_user("bob"), SWITCHED)
    response = confirm(mine, eight, machine=other.machine_id)
    assert response.status_code == 422  # type: ignore[attr-defined]
    assert "Select a valid choice" in response.content.decode()  # type: ignore[attr-defined]
    assert Evidence.objects.count() == 1


def test_the_same_paste_twice_is_said_with_the_text_still_there(
    mine: Client, ada: User, eight: Listing
) -> None:
    first = put(eight, ada, PAIRS)
    response = confirm(mine, eight, machine=first.machine_id)
    page = response.content.decode()  # type: ignore[attr-defined]
    assert "already kept for this machine" in page
    assert "NV12" in page


@pytest.mark.parametrize("state", ["pending", "accepted", "rejected", "withdrawn"])
def test_anothers_evidence_is_not_there(mine: Client, eight: Listing, state: str) -> None:
    other = put(eight, User.objects.create_user("bob"), PAIRS)
    Evidence.objects.update(state=state)
    for address in (f"/evidence/{other.pk}/", "/evidence/999999/"):
        assert mine.get(address).status_code == 404
        assert mine.post(f"{address}take-back/").status_code == 404
    assert mine.post(f"/evidence/machines/{other.machine_id}/changed/").status_code == 404
    assert Evidence.objects.get().state == state


def test_own_evidence_is_shown_and_taken_back(mine: Client, ada: User, eight: Listing) -> None:
    kept = put(eight, ada, PAIRS)
    assert "NV12" in text(mine, kept.get_absolute_url())
    mine.post(f"/evidence/{kept.pk}/take-back/")
    assert "taken back by its uploader" in text(mine, kept.get_absolute_url())
    assert "No pair of GPUs was seen" in text(mine, eight.get_absolute_url())


def test_a_reboot_makes_the_evidence_old(mine: Client, ada: User, eight: Listing) -> None:
    kept = put(eight, ada, PAIRS)
    mine.post(f"/evidence/machines/{kept.machine_id}/changed/", {"change": "reboot"})
    assert "old since a reboot" in text(mine, eight.get_absolute_url())
    assert set(Fact.objects.values_list("expires_at", flat=True)) != {kept.expires_at}


def test_every_change_asks_for_a_token(ada: User, eight: Listing) -> None:
    kept = put(eight, ada, PAIRS)
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ada)
    for address in (
        paste_address(eight),
        keep_address(eight),
        f"/evidence/{kept.pk}/take-back/",
        f"/evidence/machines/{kept.machine_id}/changed/",
        "/logout/",
        "/login/",
    ):
        assert strict.post(address, {"text": "x"}).status_code == 403
    assert Evidence.objects.get().state == "pending"


@pytest.mark.parametrize("name", ["keep/", "../../evidence/{}/take-back/"])
def test_a_change_is_never_a_get(mine: Client, ada: User, eight: Listing, name: str) -> None:
    kept = put(eight, ada, PAIRS)
    address = f"/evidence/{kept.pk}/take-back/" if "{}" in name else keep_address(eight)
    assert mine.get(address).status_code == 405


HOSTILE = (
    "$ nvidia-smi topo -m\n\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tNV4\t X \n<script>alert(1)</script>"
)


def test_a_hostile_paste_is_inert(mine: Client, ada: User) -> None:
    row = make_listing(make_source(), gpu_count=2)
    shown = mine.post(paste_address(row), {"text": HOSTILE, "ran_by": "renter"}).content.decode()
    assert "<script>alert" not in shown
    confirm(mine, row, text=HOSTILE)
    kept = Evidence.objects.get()
    assert "<script>alert" not in text(mine, kept.get_absolute_url())
    assert "<script>alert" not in text(mine, row.get_absolute_url())


# --- the desk


def act(client: Client, action: str, kept: Evidence, reason: str = "") -> None:
    client.post(
        "/admin/marketplace/evidence/",
        {"action": action, "_selected_action": [kept.pk], "reason": reason},
    )


@pytest.fixture
def curator() -> Client:
    return signed_in(User.objects.create_superuser("cora"))


def test_a_curator_accepts_and_withdraws_with_a_reason(
    curator: Client, ada: User, eight: Listing
) -> None:
    kept = put(eight, ada, PAIRS)
    act(curator, "accept", kept)
    act(curator, "withdraw", kept)
    assert Evidence.objects.get().state == "accepted"
    act(curator, "withdraw", kept, "another machine")
    assert Evidence.objects.get().state == "withdrawn"
    page = text(curator, f"/admin/marketplace/evidence/{kept.pk}/change/")
    assert "another machine" in page


@pytest.mark.parametrize("granted", [(), ("view_evidence",)])
def test_without_the_right_nobody_reviews(
    ada: User, eight: Listing, granted: tuple[str, ...]
) -> None:
    kept = put(eight, ada, PAIRS)
    clerk = User.objects.create_user("clerk", is_staff=True)
    clerk.user_permissions.set(Permission.objects.filter(codename__in=granted))
    act(signed_in(clerk), "accept", kept)
    act(signed_in(ada), "accept", kept)
    assert Evidence.objects.get().state == "pending"


def test_the_login_page_is_ours_and_leads_nowhere_else(client: Client, ada: User) -> None:
    ada.set_password("long and of no use")
    ada.save()
    assert "Sign in" in text(client, "/login/")
    fields = {"username": "ada", "password": "long and of no use"}
    answer = client.post("/login/?next=//evil.example/", {**fields, "next": "//evil.example/"})
    assert answer["Location"] == "/"
    assert client.post("/logout/")["Location"] == "/"
    assert client.get("/logout/").status_code == 302


def test_the_timeline_says_what_each_look_showed_and_how_firmly(
    mine: Client, ada: User, eight: Listing
) -> None:
    kept = put(eight, ada, PAIRS)
    page = text(mine, eight.get_absolute_url())
    shown = page[page.index('class="timeline"') :]
    assert "Link between GPUs: <bdi>NVLink between pairs</bdi>" in shown
    assert "run " in shown
    mine.post(f"/evidence/machines/{kept.machine_id}/changed/", {"change": "driver"})
    assert "old since another driver" in text(mine, eight.get_absolute_url())


def test_every_group_of_a_plan_says_what_it_moves_and_what_would_clear_it(
    mine: Client, ada: User, eight: Listing
) -> None:
    put(eight, ada, PAIRS)
    page = text(mine, f"{eight.get_absolute_url()}?workload=train-llama-70b")
    assert "group by group" in page
    assert "tensor parallel over" in page
    assert "per optimizer step" in page
    assert "Cleared by:" in page
    assert 'a rented test hour: <a href="#prices-title">19.92 USD</a>' in page


def test_a_kept_paste_shows_its_facts_and_why_it_is_old(
    mine: Client, ada: User, eight: Listing
) -> None:
    kept = put(eight, ada, PAIRS)
    assert "NVLink between pairs" in text(mine, kept.get_absolute_url())
    mine.post(f"/evidence/machines/{kept.machine_id}/changed/", {"change": "reboot"})
    page = text(mine, kept.get_absolute_url())
    assert "because of a reboot" in page
