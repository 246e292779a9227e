"""The page in headless Chromium: BASE_URL and a folder for screenshots as arguments, a chat model behind the server."""

import pathlib
import shutil
import sys
import tempfile

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

if not (shutil.which("chromium") and shutil.which("chromedriver")):
    print("skipped: chromium and chromium-driver are not installed")
    sys.exit(77)
url, pictures = sys.argv[1], pathlib.Path(sys.argv[2])
pictures.mkdir(parents=True, exist_ok=True)
options = webdriver.ChromeOptions()
for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--window-size=1280,860"):
    options.add_argument(argument)
options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
browser = webdriver.Chrome(options=options)


def find(selector):
    return browser.find_element(By.CSS_SELECTOR, selector)


def wait(condition, what):
    WebDriverWait(browser, 240).until(lambda _: condition(), message=what)


def messages(role):
    return [item.text for item in browser.find_elements(By.CSS_SELECTOR, f"#messages li.{role} .text")]


def answered(count):
    return len(messages("assistant")) == count and not find("#stop").is_enabled()


def ask(text):
    find("#question").send_keys(text, Keys.ENTER)


def set_value(selector, value):
    browser.execute_script("document.querySelector(arguments[0]).value = arguments[1]", selector, value)


try:
    browser.get(url)
    wait(lambda: "slots" in find("#model").text, "the page connects")
    set_value("#max-tokens", "24")
    set_value("#temperature", "0")
    ask("Say hello.")
    wait(lambda: answered(1), "a first answer")
    ask("And once more.")
    wait(lambda: answered(2), "a second answer")
    assert "reused" in find("#status").text and "KV cache" in find("#kv-text").text
    browser.save_screenshot(str(pictures / "desktop.png"))

    browser.refresh()
    wait(lambda: len(messages("assistant")) == 2, "the conversation survives a reload")
    set_value("#max-tokens", "24")
    set_value("#temperature", "0")
    before = messages("assistant")
    find("#again").click()
    wait(lambda: answered(2), "a regenerated answer")
    assert messages("assistant") == before, "greedy answers repeat"

    set_value("#max-tokens", "100000")
    ask("Tell a very long story.")
    wait(lambda: len(messages("assistant")) == 3 and messages("assistant")[2] != "", "a stream begins")
    find("#stop").click()
    wait(lambda: not find("#stop").is_enabled(), "a stream stops")
    set_value("#max-tokens", "24")

    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("The lighthouse of Orm was painted green in spring. " * 60)
        file.flush()
        find("#file").send_keys(file.name)
        wait(lambda: "tokens read" in find("#reading-text").text, "a document is read")
    wait(lambda: find("#about-document").is_displayed(), "the document is chosen")
    for count, question in enumerate(("What was painted?", "When?"), start=1):
        ask(question)
        wait(lambda count=count: answered(count), "an answer about the document")
    browser.save_screenshot(str(pictures / "document.png"))

    browser.set_window_size(390, 844)
    wide = browser.execute_script("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0, f"the page is {wide} pixels wider than a phone"
    browser.save_screenshot(str(pictures / "phone.png"))
    find("#documents li button:last-of-type").click()
    wait(lambda: not browser.find_elements(By.CSS_SELECTOR, "#documents li"), "the document is deleted")
    severe = [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"]
    assert not severe, severe
    print("passed")
finally:
    browser.quit()
