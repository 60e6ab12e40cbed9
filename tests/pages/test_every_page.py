"""What must hold on every page, walked: each number opens its source, each picture speaks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from urllib.parse import urljoin, urlsplit

import pytest
from bs4 import BeautifulSoup, NavigableString, Tag
from django.contrib.auth.models import User
from django.test import Client

from marketplace.glossary import terms_in
from tests.pages.everything import addresses, make_everything, save_an_answer

pytestmark = pytest.mark.django_db

NUMBER = re.compile(
    r"\d[\d,.]*(?:–[\d,.]+)? ?(?:GiB|GB|MB|kB|tokens/s|ms\b|s\b|h\b|hours|USD|EUR|%|GPUs:)"
)
GIVEN = (
    "bdi, time, code, pre, form, nav, .chips, .echo, .count, .eyebrow, svg, [data-given], .status"
)
"""What somebody said or asked, and what only counts the page itself."""
OF_EACH_SHAPE = 3
"""Pages that are fetched of each kind of address."""
WORKED_OUT = re.compile(
    r"[÷+=]|per hour ×|formula|source|snapshot|assumption|published", re.IGNORECASE
)


@pytest.fixture
def ada(client: Client) -> Client:
    client.force_login(User.objects.create_user("ada"))
    return client


@pytest.fixture
def pages(ada: Client) -> dict[str, BeautifulSoup]:
    eight = make_everything(User.objects.get())
    kept = save_an_answer(ada)
    found = {}
    for name, address in addresses(eight, kept).items():
        response = ada.get(address)
        assert response.status_code in (200, 404, 422), (name, response.status_code)
        found[name] = BeautifulSoup(response.content, "lxml")
        found[name].address = address  # type: ignore[attr-defined]
    return found


class Opening:
    """Whether a number leads to where it comes from. Targets on other pages are fetched once."""

    def __init__(self, client: Client) -> None:
        self.client, self.fetched = client, dict[str, BeautifulSoup]()
        self.shapes = Counter[tuple[str, ...]]()

    def _shape(self, path: str, query: str, fragment: str) -> tuple[str, ...]:
        """Addresses that differ in keys alone lead to the same kind of page."""
        names = sorted(part.partition("=")[0] for part in query.split("&"))
        return (re.sub(r"[0-9]+", "N", path), *names, fragment)

    def opens(self, text: NavigableString, soup: BeautifulSoup) -> bool:
        return any(self._by(tag, soup) for tag in text.parents if isinstance(tag, Tag))

    def _by(self, tag: Tag, soup: BeautifulSoup) -> bool:
        if tag.name == "a" and tag.get("href"):
            return self._led(str(tag["href"]), soup)
        if tag.name == "details" and self._tell(tag, soup):
            return True
        if tag.name == "table" and tag.get("data-opens") == "row":
            return self._rows_lead(tag, soup)
        told = tag.get("aria-details")
        return bool(told) and self._tells(soup, str(told))

    def _rows_lead(self, table: Tag, soup: BeautifulSoup) -> bool:
        """A listing's own page names the source of each of its attributes."""
        link = table.css.select_one("tbody th a.cell-main")
        return link is not None and self._led(f"{link['href']}#attributes-title", soup)

    def _led(self, href: str, soup: BeautifulSoup) -> bool:
        whole = urlsplit(urljoin(f"http://testserver{soup.address}", href))  # type: ignore[attr-defined]
        page = f"{whole.path}?{whole.query}"
        if not whole.fragment:
            return False
        if href.startswith("#"):
            return self._tells(soup, whole.fragment)
        shape = self._shape(whole.path, whole.query, whole.fragment)
        if page not in self.fetched and self.shapes[shape] >= OF_EACH_SHAPE:
            return True
        if page not in self.fetched:
            self.shapes[shape] += 1
            self.fetched[page] = BeautifulSoup(self.client.get(page).content, "lxml")
        return self._tells(self.fetched[page], whole.fragment)

    def _tells(self, soup: BeautifulSoup, key: str) -> bool:
        """The target stands there, and with it what stands under its heading."""
        found = soup.find(id=key)
        if not isinstance(found, Tag):
            return False
        if found.get("aria-details"):
            return self._tells(soup, str(found["aria-details"]))
        around = found.parent if found.name in ("h2", "h3", "h4") else found
        return around is not None and self._tell(around, soup)

    def _tell(self, tag: Tag, soup: BeautifulSoup) -> bool:
        """It says how the number came about, or leads to where that is said."""
        links = (str(link["href"]) for link in tag.css.select("a[href*='#']"))
        own = [str(tag["href"])] if tag.get("href") else []
        return bool(WORKED_OUT.search(tag.get_text(" "))) or any(
            self._led(href, soup) for href in (*own, *links)
        )


def numbers(soup: BeautifulSoup) -> Iterator[NavigableString]:
    """Texts that state a quantity with its unit, and all figures in columns of numbers."""
    main = soup.find("main")
    assert isinstance(main, Tag)
    for text in main.find_all(string=re.compile(r"\d")):
        cell = text.find_parent("td")
        in_column = isinstance(cell, Tag) and "num" in (cell.get("class") or [])
        if not given(text) and (in_column or NUMBER.search(str(text))):
            yield text


def given(text: NavigableString) -> bool:
    return any(isinstance(one, Tag) and one.css.match(GIVEN) for one in text.parents)


def test_every_number_opens_its_derivation(ada: Client, pages: dict[str, BeautifulSoup]) -> None:
    opening, found, count = Opening(ada), dict[str, list[str]](), 0
    for name, soup in pages.items():
        texts = list(numbers(soup))
        count += len(texts)
        shut = [" ".join(str(one).split()) for one in texts if not opening.opens(one, soup)]
        if shut:
            found[name] = shut
    assert found == {}
    assert count > 300


def said(tag: Tag | None) -> str:
    return " ".join(tag.get_text().split()) if tag else ""


def test_every_title_states_the_answer(pages: dict[str, BeautifulSoup]) -> None:
    found = {}
    for name, soup in pages.items():
        title, heading = said(soup.find("title")), said(soup.find("h1"))  # type: ignore[arg-type]
        if heading not in title or not title.endswith("– Linkproof") or len(heading) < 12:
            found[name] = (title, heading)
    assert found == {}


def test_every_page_tells_how_old_its_catalog_is(pages: dict[str, BeautifulSoup]) -> None:
    for name, soup in pages.items():
        strip = said(soup.css.select_one("aside.strip"))
        assert "last successful sync" in strip, name
        assert "fresh" in strip, name
        assert "failed" in strip, name
        assert "not reservations" in strip, name


def pictures(soup: BeautifulSoup) -> list[Tag]:
    return list(soup.css.select("main svg[role=img]"))


def test_every_picture_states_its_finding(pages: dict[str, BeautifulSoup]) -> None:
    count = 0
    for name, soup in pages.items():
        for svg in pictures(soup):
            told = said(svg.find("desc")) or str(svg.get("aria-label", ""))  # type: ignore[arg-type]
            assert len(told) > 20, (name, told)
            assert told.endswith((".", "?")), (name, told)
            count += 1
        for svg in soup.css.select("main svg:not([role=img])"):
            assert svg.get("aria-hidden") == "true", (name, str(svg)[:100])
    assert count > 40


def test_every_figure_comes_as_a_table_and_as_a_file(
    ada: Client, pages: dict[str, BeautifulSoup]
) -> None:
    seen = set()
    for name, soup in pages.items():
        for figure in soup.css.select("main figure:has(svg[role=img])"):
            words = [said(one) for one in figure.css.select("summary, a, button")]
            assert any(one.startswith("As table") for one in words), (name, words)
            assert "Download SVG" in words, (name, words)
            link = figure.find("a", string="Download SVG")
            if isinstance(link, Tag):
                whole = urljoin(f"http://testserver{soup.address}", str(link["href"]))  # type: ignore[attr-defined]
                seen.add(urlsplit(whole).path)
                response = ada.get(whole.removeprefix("http://testserver"))
                assert response["Content-Type"].startswith("image/svg+xml"), (name, whole)
    assert len(seen) > 4


LABELS = "h2, h3, th[scope=col], dt, label, legend, .eyebrow, .key li"


def labels(soup: BeautifulSoup) -> Iterator[str]:
    main = soup.find("main")
    assert isinstance(main, Tag)
    for tag in main.css.select(LABELS):
        if not tag.find_parent("dl", class_="glossary") and not tag.css.select("bdi, option, code"):
            yield said(tag)


def test_every_term_in_a_label_leads_to_the_glossary(pages: dict[str, BeautifulSoup]) -> None:
    found = {}
    for name, soup in pages.items():
        if name == "glossary":
            continue
        named = {term.slug for text in labels(soup) for _, term in terms_in(text) if term}
        linked = {str(a["href"]).partition("#")[2] for a in soup.css.select("a.term")}
        if missing := sorted(named - linked):
            found[name] = missing
    assert found == {}


def test_every_link_to_the_glossary_finds_its_term(pages: dict[str, BeautifulSoup]) -> None:
    there = {str(tag["id"]) for tag in pages["glossary"].css.select(".glossary [id]")}
    for name, soup in pages.items():
        for link in soup.css.select("a.term"):
            assert str(link["href"]).partition("#")[2] in there, (name, link["href"])
