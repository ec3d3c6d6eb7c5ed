"""The report in a real browser: opens from a file, sorts, searches, expands, fits a phone."""

from __future__ import annotations

import base64
import re
import shutil

import pytest
from pages import NASTY, ORIGIN, gridworld_assessment, one_step_problem
from parts import lacking, needed

from spibb.algorithms.spibb import PiBSpibb
from spibb.report.assessment import assess
from spibb.report.page import MAX_STATES, render

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--force-prefers-reduced-motion",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not (CHROMIUM and DRIVER):
        lacking("chromium or chromedriver is not installed")
    needed("selenium")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report of 'us'.html"
    path.write_text(render(gridworld_assessment()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def opened(browser, address):
    browser.set_window_size(1100, 900)
    browser.get(address)
    return browser


def find_all(driver, css):
    return driver.find_elements("css selector", css)


def column(driver, key):
    """The values of a column, in the order shown."""
    return driver.execute_script(
        "return [...document.querySelectorAll('#changes > tbody')]"
        ".map(body => body.dataset[arguments[0]])",
        key,
    )


def test_it_opens_without_a_complaint(opened):
    assert "policy" in opened.title
    assert opened.get_log("browser") == []
    assert opened.execute_script("return performance.getEntriesByType('resource').length") == 0


def test_columns_sort_both_ways(opened):
    before = [float(x) for x in column(opened, "impact")]
    assert before == sorted(before, reverse=True)
    for key, order in (("visits", True), ("visits", False), ("impact", True)):
        head = find_all(opened, f"th[data-key={key}]")[0]
        head.find_element("css selector", "button").click()
        values = [float(x) for x in column(opened, key)]
        assert values == sorted(values, reverse=order)
        assert head.get_attribute("aria-sort") == ("descending" if order else "ascending")
        assert len(find_all(opened, "th[aria-sort]")) == 1
    find_all(opened, "th[data-key=state] button")[0].click()
    names = [int(x) for x in column(opened, "state")]
    assert names == sorted(names)


def test_search_hides_the_rows_that_do_not_fit(opened):
    everything = column(opened, "state")
    box = find_all(opened, "#search")[0]
    box.send_keys(everything[0])
    shown = [b.get_attribute("data-state") for b in find_all(opened, "#changes > tbody")
             if b.is_displayed()]  # fmt: skip
    assert everything[0] in shown
    assert len(shown) < len(everything)
    assert find_all(opened, "#found")[0].text.startswith(
        f"{len(shown)} of {len(everything)} rows; "
    )
    box.send_keys(" nowhere")
    assert not any(body.is_displayed() for body in find_all(opened, "#changes > tbody"))


def test_rows_expand_by_mouse_and_by_keyboard(opened):
    toggle, detail = (find_all(opened, css)[0] for css in (".toggle", ".detail"))
    assert not detail.is_displayed()
    toggle.click()
    assert detail.is_displayed()
    assert toggle.get_attribute("aria-expanded") == "true"
    toggle.send_keys(" ")
    assert not detail.is_displayed()
    find_all(opened, "#all")[0].click()
    assert all(row.is_displayed() for row in find_all(opened, ".detail"))
    assert "trusted" in detail.text


def test_a_phone_needs_no_sideways_scrolling(opened):
    opened.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 375, "height": 800, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        find_all(opened, ".toggle")[0].click()
        assert opened.execute_script("return document.documentElement.scrollWidth") <= 375
        wide = opened.execute_script(
            "return [...document.querySelectorAll('#changes, .detail.open table')]"
            ".filter(t => t.getBoundingClientRect().right > 375).length"
        )
        assert wide == 0
    finally:
        opened.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def contrasts(driver) -> set[float]:
    """Contrast between the text of the page and what is behind it, as WCAG defines it."""
    pairs = driver.execute_script("""
        const behind = (e) => {
          for (; e; e = e.parentElement) {
            const colour = getComputedStyle(e).backgroundColor;
            if (colour !== 'rgba(0, 0, 0, 0)') return colour;
          }
          return 'rgb(255, 255, 255)';
        };
        return [...document.querySelectorAll('p, td, th, dt, dd, button, caption, small, h1, a')]
          .map(e => [getComputedStyle(e).color, behind(e)])""")
    return {_contrast(_light(text), _light(paper)) for text, paper in map(tuple, pairs)}


def _contrast(x: float, y: float) -> float:
    return (max(x, y) + 0.05) / (min(x, y) + 0.05)


def _light(colour: str) -> float:
    parts = [int(part) for part in re.findall(r"\d+", colour)[:3]]
    return sum(share * _linear(part) for share, part in zip((0.2126, 0.7152, 0.0722), parts))


def _linear(part: int) -> float:
    x = part / 255
    return x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_by_day_and_by_night(opened, scheme):
    """WCAG AA asks for 4.5 between small text and its background."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    try:
        paper = opened.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (_light(paper) < 0.05) == (scheme == "dark")
        assert min(contrasts(opened)) >= 4.5
    finally:
        opened.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


N_STATES = MAX_STATES + 60


@pytest.fixture(scope="module")
def many(browser, tmp_path_factory):
    """The report of more states than are listed, with nasty labels of some length."""
    problem = one_step_problem(
        N_STATES, 3, 40 * N_STATES, NASTY + " ward{0} " + "x" * 80 + " end{0}"
    )
    path = tmp_path_factory.mktemp("many") / "report.html"
    path.write_text(render(assess(PiBSpibb(n_wedge=5).improve(problem), ORIGIN)), encoding="utf-8")
    browser.set_window_size(1100, 900)
    browser.get(path.as_uri())
    return browser


SEARCHED = """
const box = document.querySelector("#search");
return arguments[0].map((words) => {
  box.value = words;
  box.dispatchEvent(new Event("input"));
  const others = [...document.querySelectorAll("#others tbody tr")];
  const rows = [...others, ...document.querySelectorAll("#changes > tbody")];
  return [rows.filter(row => row.checkVisibility()).map(row => row.innerText), others.length];
});
"""
"""For each search the texts of the visible rows, and the number of rows of states not listed."""


def test_search_finds_states_that_are_not_listed(many):
    """All searches in one script: keys, which another test types, take a search each."""
    listed = len(find_all(many, "#changes > tbody"))
    assert listed == MAX_STATES
    states = range(0, N_STATES, 7)
    found = many.execute_script(SEARCHED, [f"ward{state} end{state}" for state in states])
    assert len(found) == len(states)
    for state, (shown, _) in zip(states, found):
        assert any(f"end{state}" in text for text in shown), state
    assert any(others > 0 for _, others in found)
    assert many.get_log("browser") == []


def test_paper_gets_few_pages(many):
    """300 rows would be dozens; text on paper is dark even where screens are."""
    feature = {"name": "prefers-color-scheme", "value": "dark"}
    many.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": [feature]})
    paper = many.execute_script("return getComputedStyle(document.body).backgroundColor")
    many.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    printed = base64.b64decode(many.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert paper == "rgb(255, 255, 255)"
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= 8


@pytest.mark.parametrize(("width", "media"), [(1280, ""), (400, ""), (705, "print")])
def test_long_labels_push_no_number_off_the_page(many, width, media):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    many.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    many.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})
    try:
        beyond = many.execute_script(
            "return [...document.querySelectorAll('#changes, .criteria')]"
            ".map(t => t.scrollWidth - t.parentElement.clientWidth)"
        )
        assert len(beyond) == 2
        assert max(beyond) <= 0
    finally:
        many.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        many.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
