"""The committed book, built as it is and read in a real browser without a network.

Chromium is found by $HOWATTEND_CHROMIUM or its usual names. Without one these tests are skipped, or fail where
$HOWATTEND_REQUIRE_BROWSER is set, as in continuous integration.
"""

from __future__ import annotations

import os
import re
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, sync_playwright

from howattend import book

ROOT = Path(__file__).resolve().parents[1]
NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
ARGUMENTS += ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the pages built from what is committed; every warning is an error."""
    return book.build_html(ROOT, tmp_path_factory.mktemp("pages") / "_build" / "html").parent


@pytest.fixture(scope="module")
def address(pages: Path) -> Iterator[str]:
    """The pages' address on this machine."""

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(pages))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrowserContext]:
    """An installed Chromium with a new profile."""
    named = os.environ.get("HOWATTEND_CHROMIUM")
    path = next((found for name in ([named] if named else NAMES) if (found := shutil.which(name))), None)
    if path is None:
        reason = f"no browser: neither $HOWATTEND_CHROMIUM ({named or 'not set'}) nor {', '.join(NAMES)} is on the PATH"
        if os.environ.get("HOWATTEND_REQUIRE_BROWSER"):
            pytest.fail(f"{reason}, and $HOWATTEND_REQUIRE_BROWSER is set")
        pytest.skip(reason)
    with sync_playwright() as playwright:
        context = playwright.chromium.launch_persistent_context(
            tmp_path_factory.mktemp("profile"), executable_path=path, args=ARGUMENTS, headless=True
        )
        yield context
        context.close()


@pytest.fixture
def page(browser: BrowserContext, address: str) -> Iterator[Page]:
    """A page that fails its test on any error, failed response, or request that leaves this machine."""
    opened = browser.new_page()
    problems: list[str] = []

    def request(seen) -> None:
        if not seen.url.startswith((address, "data:", "blob:")):
            problems.append(f"request leaves this machine: {seen.url}")

    def response(seen) -> None:
        if seen.status >= 400:
            problems.append(f"{seen.status}: {seen.url}")

    opened.on("pageerror", lambda error: problems.append(f"page error: {error}"))
    opened.on("console", lambda said: problems.append(f"console: {said.text}") if said.type == "error" else None)
    opened.on("request", request)
    opened.on("response", response)
    opened.on("requestfailed", lambda seen: problems.append(f"failed: {seen.url}"))
    yield opened
    opened.close()
    assert problems == []


def listed() -> list[str]:
    """Every page of the book, from _toc.yml as text: a missing chapter is for test_book to report."""
    return re.findall(r"(?:root|file): *(\S+)", (ROOT / "_toc.yml").read_text(encoding="utf-8"))


def settled(page: Page, address: str, name: str) -> None:
    """Open a page and wait until its mathematics is drawn."""
    page.goto(f"{address}/{name}.html", wait_until="load")
    page.evaluate("() => window.MathJax?.startup?.promise")


@pytest.mark.parametrize("name", listed())
def test_page_draws_its_mathematics_and_images(page: Page, address: str, name: str):
    settled(page, address, name)
    left = page.evaluate(
        "() => [...document.querySelectorAll('.math')].filter(e => !e.querySelector('mjx-container')).length"
    )
    assert left == 0, "mathematics is not drawn"
    assert page.locator("mjx-merror, [data-mjx-error]").all_inner_texts() == []
    images = page.evaluate(
        """() => Promise.all([...document.images].map(async image => {
            image.loading = 'eager';
            await image.decode().catch(() => {});
            return [image.getAttribute('src'), image.naturalWidth, image.getAttribute('alt') ?? ''];
        }))"""
    )
    assert [source for source, width, _ in images if not width] == []
    unnamed = [source for source, _, alt in images if not alt.strip() or re.search(r"\.(png|svg|jpe?g)$|^_?\w+/", alt)]
    assert unnamed == [], "images without alt text: set mystnb.image.alt in the cell's metadata"


@pytest.mark.parametrize("name", listed())
def test_page_fits_a_telephone(page: Page, address: str, name: str):
    page.set_viewport_size({"width": 390, "height": 844})
    settled(page, address, name)
    wide = page.evaluate(
        """() => document.documentElement.scrollWidth <= innerWidth ? [] :
            [...document.querySelectorAll('article *')].filter(e => e.getBoundingClientRect().right > innerWidth)
                .slice(0, 5).map(e => e.outerHTML.slice(0, 120))"""
    )
    assert wide == []
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390


def test_first_page_leads_into_the_book(page: Page, address: str):
    page.goto(f"{address}/index.html")
    page.wait_for_url(f"{address}/{listed()[0]}.html")
    assert "How Encoder–Decoders Attend" in page.title()
    links = page.locator("nav a.reference.internal").evaluate_all("all => all.map(link => link.href)")
    assert {f"{address}/{name}.html" for name in listed()[1:]} <= set(links)


def test_search_finds_pages(page: Page, address: str):
    page.goto(f"{address}/search.html?q=encoder")
    page.locator("#search-results li a").first.wait_for()
    assert page.locator("#search-results li").count() >= 1


def test_theme_changes_and_stays(page: Page, address: str):
    def theme() -> str:
        return page.evaluate("() => document.documentElement.dataset.theme")

    settled(page, address, listed()[0])
    button = page.locator("button.theme-switch-button:visible").first
    seen = {theme()}
    for _ in range(3):  # automatic, light, dark
        button.click()
        seen.add(theme())
    assert seen == {"light", "dark"}
    while theme() != "dark":
        button.click()
    settled(page, address, listed()[-1])
    assert theme() == "dark"


def test_a_hidden_solution_opens(page: Page, address: str, pages: Path):
    hidden = [name for name in listed() if 'class="dropdown admonition' in (pages / f"{name}.html").read_text("utf-8")]
    assert hidden, "no page has an exercise with a hidden solution: an admonition of class dropdown"
    settled(page, address, hidden[0])
    solution = page.locator(".admonition.dropdown").first
    text = solution.locator("p:not(.admonition-title)").first
    assert not text.is_visible()
    solution.locator("button, summary, .admonition-title").first.click()
    text.wait_for(state="visible")


def claims_shown(page: Page) -> list[str]:
    """The claims that the ledger's first table shows."""
    bodies = page.locator(".ledger:has(form) tbody[data-claim]")
    return bodies.evaluate_all("all => all.filter(one => one.checkVisibility()).map(one => one.dataset.claim)")


def test_the_ledger_filters_and_keeps_its_state_in_the_address(page: Page, address: str):
    settled(page, address, "book/ledger")
    form, said = page.locator(".ledger-filters"), page.locator(".ledger-filters output")
    everything = claims_shown(page)
    assert said.inner_text() == f"{len(everything)} of {len(everything)} claims"
    form.get_by_label("task").select_option("escan")
    of_task = claims_shown(page)
    assert {"E1", "D1", "D4"} <= set(of_task) < set(everything)
    assert "O1" not in of_task
    form.get_by_label("architecture").focus()
    page.keyboard.type("AO")  # without a mouse
    assert {"E1", "D4"} <= set(claims_shown(page)) < set(of_task)
    assert "D1" not in claims_shown(page)
    rows = page.locator("tbody[data-claim=E1] > tr[data-architecture]:visible")
    assert set(rows.evaluate_all("all => all.map(one => one.dataset.architecture)")) == {"AO"}
    form.get_by_label("search").fill("twice")
    some = claims_shown(page)
    assert some
    assert said.inner_text() == f"{len(some)} of {len(everything)} claims"
    assert page.url.endswith("#task=escan&architecture=AO&words=twice")
    page.reload()  # what is in the address comes back
    assert claims_shown(page) == some
    assert form.get_by_label("search").input_value() == "twice"
    form.get_by_role("button", name="show all").click()
    page.wait_for_function("() => !location.hash")
    assert claims_shown(page) == everything
    form.get_by_label("search").fill("no claim says this")
    assert claims_shown(page) == []
    page.goto(f"{address}/book/ledger.html#claim-O2")  # a claim that is hidden takes the filters away
    assert claims_shown(page) == everything
    page.goto(f"{address}/book/ledger.html#verdict=no+such+verdict&task=sort")  # what there is none of is no filter
    assert claims_shown(page) == ["H1", "S1"]


def test_the_ledger_reads_without_a_script(browser: BrowserContext, pages: Path):
    text = (pages / "book" / "ledger.html").read_text("utf-8")
    opened = browser.new_page()
    opened.set_content(re.sub(r"(?s)<script.*?</script>", "", text))
    assert len(claims_shown(opened)) >= 40
    assert not opened.locator(".ledger-filters").is_visible()
    opened.locator("details summary").first.click()  # conditions unfold by themselves
    assert opened.locator("details tr").first.is_visible()
    opened.close()
