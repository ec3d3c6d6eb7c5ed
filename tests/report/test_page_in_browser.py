"""The report in a real browser: opens from a file, sorts, searches, expands, fits a phone."""

from __future__ import annotations

import os
import shutil

import pytest
from pages import gridworld_assessment

from spibb.report.page import render

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--force-prefers-reduced-motion",
)  # fmt: skip


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if not (CHROMIUM and DRIVER) and not os.environ.get("CI"):
        pytest.skip("chromium or chromedriver is not installed")
    if not os.environ.get("CI"):
        pytest.importorskip("selenium")
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
    assert find_all(opened, "#found")[0].text == f"{len(shown)} of {len(everything)} rows"
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


def test_text_has_contrast(opened):
    """WCAG AA asks for 4.5 between small text and its background."""
    colours = opened.execute_script("""
        return [...document.querySelectorAll('p, td, th, dt, dd, button, caption, small, h1, h2')]
          .map(e => getComputedStyle(e).color)""")
    for red, green, blue in {tuple(map(int, c[4:-1].split(","))) for c in colours}:
        light = sum(
            share * _linear(part)
            for share, part in ((0.2126, red), (0.7152, green), (0.0722, blue))
        )
        assert (0.88 + 0.05) / (light + 0.05) >= 4.5  # 0.88: the darkest tint behind text


def _linear(part: int) -> float:
    x = part / 255
    return x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4
