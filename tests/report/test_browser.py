"""A page in a real browser: filters, switches, hovering, keys, and no network requests."""

import json
import shutil
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from graphxai_data.report.page import write_report
from tests.conftest import SharedBuilds
from tests.report.reading import Page

webdriver = pytest.importorskip("selenium.webdriver")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import Select, WebDriverWait  # noqa: E402

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def driver() -> Iterator[Any]:
    """Chromium without a window; skipped where there is none."""
    browser = next(filter(None, map(shutil.which, _BROWSERS)), None)
    helper = shutil.which("chromedriver")
    if browser is None or helper is None:
        pytest.skip("no chromium and chromedriver here (Debian: chromium, chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"):
        options.add_argument(argument)
    options.add_argument("--window-size=1280,1400")
    # With smooth scrolling, elements would still move while they are clicked.
    options.add_argument("--force-prefers-reduced-motion")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(helper))
    yield chrome
    chrome.quit()


@pytest.fixture
def show(driver: Any) -> Iterator[Any]:
    """Open a page, and wait for its gallery; errors in the console fail the test."""

    def opened(path: Path, fragment: str = "") -> Any:
        driver.get("about:blank")
        driver.get_log("performance")
        driver.get_log("browser")
        driver.get(path.as_uri() + fragment)
        ready = "return !document.getElementById('gallery').hasAttribute('aria-busy')"
        WebDriverWait(driver, 20).until(lambda d: d.execute_script(ready))
        return driver

    yield opened
    assert driver.get_log("browser") == []


def cards(driver: Any) -> list[Any]:
    return driver.find_elements(By.CSS_SELECTOR, "#cards .card")


def headings(driver: Any) -> list[str]:
    return [card.find_element(By.TAG_NAME, "h3").text for card in cards(driver)]


def found_words(driver: Any) -> str:
    return driver.find_element(By.ID, "found").text


def choose(driver: Any, id_: str, text: str) -> None:
    def turn() -> str:
        return driver.find_element(By.ID, "cards").get_attribute("data-turn")

    before = turn()
    Select(driver.find_element(By.ID, id_)).select_by_visible_text(text)
    WebDriverWait(driver, 10).until(lambda _: turn() != before)


def reset(driver: Any) -> None:
    button = driver.find_element(By.CSS_SELECTOR, "#filters button[type=reset]")
    bring(driver, button)
    button.click()


@pytest.mark.parametrize("name", ["ba2motif", "dihalo", "mnist75sp-r23", "pattern"])
def test_a_page_makes_no_network_requests(show: Any, pages: dict[str, Path], name: str) -> None:
    driver = show(pages[name])
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    urls = [
        e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"
    ]
    external = [url for url in urls if not url.startswith(("file://", "data:", "blob:", "about:"))]
    assert external == []
    assert [url for url in urls if url.startswith("file://")] == [pages[name].as_uri()]
    assert len(cards(driver)) == 12


def test_filters_select_graphs(show: Any, pages: dict[str, Path]) -> None:
    driver = show(pages["dihalo"])
    assert found_words(driver) == "180 of 180 graphs match; 12 shown."
    choose(driver, "class", "F meta")
    assert found_words(driver) == "20 of 180 graphs match; 12 shown."
    assert all("F meta" in heading for heading in headings(driver))
    choose(driver, "split", "test")
    assert found_words(driver).startswith("2 of 180")
    assert all("F meta · test" in heading for heading in headings(driver))
    reset(driver)
    WebDriverWait(driver, 10).until(lambda d: found_words(d).startswith("180 of 180"))


def test_more_graphs_are_shown_when_urls_for(show: Any, pages: dict[str, Path]) -> None:
    driver = show(pages["ba2motif"])
    more = driver.find_element(By.ID, "more")
    bring(driver, more)
    more.click()
    WebDriverWait(driver, 10).until(lambda d: len(cards(d)) == 24)
    assert len(set(headings(driver))) == 24
    assert driver.switch_to.active_element.text == headings(driver)[12]


def explained_graphs(page: Path) -> int:
    """Return how many graphs of a page have a prediction, from its packed index."""
    return int((Page(page).index["predicted_0"] >= 0).sum())


def bring(driver: Any, element: Any) -> None:
    """Scroll until an element is in the middle of the window, at once."""
    where = "{block: 'center', behavior: 'instant'}"
    driver.execute_script(f"arguments[0].scrollIntoView({where})", element)
    time.sleep(0.2)


def test_outcome_and_overlap_filter_by_the_selected_explainer(
    show: Any, pages: dict[str, Path]
) -> None:
    driver = show(pages["dihalo"])
    choose(driver, "outcome", "correct")
    right = int(found_words(driver).split()[0])
    choose(driver, "outcome", "wrong")
    wrong = int(found_words(driver).split()[0])
    assert right + wrong == explained_graphs(pages["dihalo"])
    assert right > wrong
    reset(driver)
    WebDriverWait(driver, 10).until(lambda d: found_words(d).startswith("180 of 180"))
    choose(driver, "explainer", "degree")
    low = driver.find_element(By.ID, "jaccard-high")
    low.send_keys(Keys.CONTROL, "a")
    low.send_keys("0.1")
    WebDriverWait(driver, 10).until(lambda d: not found_words(d).startswith("180 of 180"))
    shown = [card.find_element(By.CLASS_NAME, "verdict").text for card in cards(driver)]
    assert shown
    assert all(float(text.split("Jaccard@k ")[1]) <= 0.1 for text in shown)


def test_the_switch_shows_another_explanation(show: Any, pages: dict[str, Path]) -> None:
    driver = show(pages["ba2motif"])
    before = [card.get_attribute("innerHTML") for card in cards(driver)]
    choose(driver, "explainer", "degree")
    after = [card.get_attribute("innerHTML") for card in cards(driver)]
    assert len(before) == len(after) == 12
    assert all(a != b for a, b in zip(before, after, strict=True))
    assert "number of neighbours" in driver.find_element(By.ID, "what").text
    # Degrees are never negative, and the largest of a graph has the full colour.
    fills = driver.execute_script(
        "return [...document.querySelectorAll('#cards .card')[0]"
        ".querySelectorAll('figure:nth-child(2) .node')].map(n => n.style.fill)"
    )
    assert any("--for) 100%" in fill for fill in fills)
    assert not any("--against" in fill for fill in fills)


@pytest.mark.parametrize(
    ("name", "words"),
    [("ba2motif", "degree "), ("dihalo", "element "), ("mnist75sp-r23", "1-s 0.")],
)
def test_pointing_at_a_node_shows_its_features_and_contribution(
    show: Any, pages: dict[str, Path], name: str, words: str
) -> None:
    driver = show(pages[name])
    node = cards(driver)[0].find_element(By.CSS_SELECTOR, "figure:nth-child(2) .node")
    bring(driver, node)
    webdriver.ActionChains(driver).move_to_element(node).perform()
    tip = driver.find_element(By.ID, "tip")
    WebDriverWait(driver, 10).until(lambda _: tip.is_displayed())
    assert words in tip.text
    assert "contribution " in tip.text
    assert "in the rationale" in tip.text


def test_explainers_without_a_model_have_no_predictions_to_filter_by(
    show: Any, pages: dict[str, Path]
) -> None:
    driver = show(pages["dihalo"])
    choose(driver, "outcome", "wrong")
    choose(driver, "explainer", "degree")
    assert not driver.find_element(By.ID, "outcome").is_enabled()
    assert found_words(driver).startswith("180 of 180")
    choose(driver, "explainer", "bcos of bcos-gine-dihalo")
    assert driver.find_element(By.ID, "outcome").is_enabled()


def test_the_classes_of_nodes_are_shown(show: Any, pages: dict[str, Path]) -> None:
    driver = show(pages["pattern"], "#graph-3")
    WebDriverWait(driver, 10).until(lambda d: d.find_element(By.ID, "dialog").is_displayed())
    cells = [e.text for e in driver.find_elements(By.CSS_SELECTOR, "#one td:last-child")]
    assert set(cells) == {"background", "pattern"}


def test_arrow_keys_move_from_node_to_node(show: Any, pages: dict[str, Path]) -> None:
    driver = show(pages["ba2motif"])
    svg = cards(driver)[0].find_element(By.CSS_SELECTOR, "svg.graph")
    driver.execute_script("arguments[0].focus()", svg)
    for key, node in ((Keys.ARROW_RIGHT, "0"), (Keys.ARROW_RIGHT, "1"), (Keys.HOME, "0")):
        driver.switch_to.active_element.send_keys(key)
        focused = driver.switch_to.active_element
        assert focused.get_attribute("data-node") == node
        assert driver.find_element(By.ID, "tip").text == focused.get_attribute("aria-label")
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not driver.find_element(By.ID, "tip").is_displayed()


def test_any_graph_is_shown_by_its_id(show: Any, pages: dict[str, Path]) -> None:
    driver = show(pages["dihalo"])
    field = driver.find_element(By.ID, "id")
    for wrong in ("180", "-1", "graph"):
        field.clear()
        field.send_keys(wrong, Keys.ENTER)
        WebDriverWait(driver, 10).until(
            lambda d, wrong=wrong: f"No graph {wrong} " in d.find_element(By.ID, "id-problem").text
        )
    field.clear()
    field.send_keys("117", Keys.ENTER)
    WebDriverWait(driver, 10).until(lambda d: d.find_element(By.ID, "dialog").is_displayed())
    dialog = driver.find_element(By.ID, "dialog")
    assert dialog.find_element(By.TAG_NAME, "h2").text.startswith("Graph 117 · ")
    nodes = len(dialog.find_elements(By.CSS_SELECTOR, "figure:first-child .node"))
    rows = dialog.find_elements(By.CSS_SELECTOR, "tbody tr")
    assert len(rows) == nodes
    in_rationale = [row for row in rows if row.find_elements(By.TAG_NAME, "td")[2].text == "yes"]
    assert len(in_rationale) == 8
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    WebDriverWait(driver, 10).until(lambda _: not dialog.is_displayed())


def test_an_address_may_name_a_graph(show: Any, pages: dict[str, Path]) -> None:
    driver = show(pages["ba2motif"], "#graph-33")
    WebDriverWait(driver, 10).until(lambda d: d.find_element(By.ID, "dialog").is_displayed())
    assert driver.find_element(By.CSS_SELECTOR, "#one h2").text.startswith("Graph 33 ")
    driver.execute_script("location.hash = '#graph-34'")
    heading = driver.find_element(By.ID, "one")
    WebDriverWait(driver, 10).until(lambda _: heading.text.startswith("Graph 34 "))


@pytest.mark.parametrize("allowed", [True, False])
def test_digests_can_be_copied(show: Any, pages: dict[str, Path], allowed: bool) -> None:
    driver = show(pages["ba2motif"])
    button = driver.find_element(By.CSS_SELECTOR, "button.copy")
    bring(driver, button)
    driver.execute_script(
        """navigator.clipboard.writeText = async (text) => {
          if (!arguments[0]) throw new Error('not allowed');
          window.copied = text;
        };
        document.addEventListener('copy', () => { window.copied = String(getSelection()); });""",
        allowed,
    )
    button.click()
    WebDriverWait(driver, 10).until(lambda _: button.text == "Copied")
    assert driver.execute_script("return window.copied") == button.get_attribute("data-copy")


def test_all_controls_have_unique_names(show: Any, pages: dict[str, Path]) -> None:
    driver = show(pages["dihalo"])
    driver.execute_script("for (const d of document.querySelectorAll('details')) d.open = true")
    driver.execute_cdp_cmd("Accessibility.enable", {})
    tree = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    names: dict[str, list[str]] = {}
    for node in tree:
        if not node.get("ignored"):
            name = node.get("name", {}).get("value", "")
            names.setdefault(node["role"]["value"], []).append(name)
    for role in ("button", "combobox", "textbox", "spinbutton", "link", "table"):
        assert names[role], role
        assert all(name.strip() for name in names[role]), role
        assert len(set(names[role])) == len(names[role]), role
    assert any("Rationale of graph" in name for name in names["group"])
    ids = driver.execute_script("return [...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(set(ids)) == len(ids)
    assert driver.execute_script("return document.documentElement.lang") == "en"
    levels = driver.execute_script(
        "return [...document.querySelectorAll('h1, h2, h3')].map((e) => Number(e.tagName[1]))"
    )
    assert levels[0] == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_legible_in_light_and_dark(show: Any, pages: dict[str, Path], scheme: str) -> None:
    driver = show(pages["ba2motif"])
    driver.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    contrast = driver.execute_script(
        """const parts = (c) => c.match(/[\\d.]+/g).slice(0, 3).map(Number);
        const light = (c) => parts(c).map((v) => v / 255)
          .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
          .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
        const paper = light(getComputedStyle(document.body).backgroundColor);
        const texts = 'p, td, th, h1, h2, a, label, dt, dd, figcaption, .word';
        return [...document.querySelectorAll(texts)]
          .map((e) => light(getComputedStyle(e).color))
          .map((ink) => (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05));"""
    )
    assert len(contrast) > 50
    assert min(contrast) >= 4.5  # WCAG 2, level AA
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_a_narrow_screen_does_not_scroll_sideways(show: Any, pages: dict[str, Path]) -> None:
    driver = show(pages["dihalo"])
    size = driver.get_window_size()
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    wide = driver.execute_script("return document.documentElement.scrollWidth")
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.set_window_size(size["width"], size["height"])
    assert wide <= 390


def test_printing_leaves_out_what_cannot_be_pressed_and_cuts_nothing_off(
    show: Any, pages: dict[str, Path]
) -> None:
    driver = show(pages["ba2motif"])
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    shown = [
        element.is_displayed()
        for element in driver.find_elements(By.CSS_SELECTOR, "button, form, nav")
    ]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    metrics = {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False}  # A4
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    driver.execute_script("window.dispatchEvent(new Event('beforeprint'))")
    cut = driver.execute_script(
        "return [...document.querySelectorAll('.scroll, body')]"
        ".filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.innerText.slice(0, 60))"
    )
    digests = [e.is_displayed() for e in driver.find_elements(By.CSS_SELECTOR, "details code")]
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert shown
    assert not any(shown)
    assert cut == []
    assert digests
    assert all(digests)


def test_nine_thousand_graphs_fit_in_five_megabytes_and_are_seen_within_a_second(
    show: Any, builds: SharedBuilds, tmp_path: Path
) -> None:
    folder = builds.folder("dihalo", rings=True)
    # One more than are shown by default, and all quick.
    shown = ["bcos", "saliency", "input-x-gradient", "degree", "halogen-closeness"]
    page = write_report(folder, out=tmp_path / "page.html", explainers=shown, check=False)
    assert page.stat().st_size < 5_000_000
    driver = show(page)
    assert found_words(driver).startswith("9,000 of 9,000 graphs match")
    painted = driver.execute_script(
        "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    assert painted < 1000
    driver.find_element(By.ID, "id").send_keys("8999", Keys.ENTER)
    WebDriverWait(driver, 10).until(lambda d: d.find_element(By.ID, "dialog").is_displayed())
    assert driver.find_element(By.CSS_SELECTOR, "#one h2").text.startswith("Graph 8999 ")
