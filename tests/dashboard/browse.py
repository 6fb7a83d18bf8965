"""What a person does on the dashboard, in headless Chromium.

browse.py BASE_URL DATABASE_URL FOLDER_FOR_SCREENSHOTS PROCESS_ID_OF_THE_SERVER
"""

import http.client
import os
import signal
import subprocess
import sys
import time
import urllib.parse

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support import expected_conditions as expected
from selenium.webdriver.support.ui import WebDriverWait

BASE, DATABASE, PICTURES = sys.argv[1:4]
SERVER = int(sys.argv[4])
PATIENCE = 60


def sql(query):
    return subprocess.run(
        ["psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-d", DATABASE, "-c", query],
        check=True, capture_output=True, text=True, timeout=PATIENCE).stdout.strip()


def begin(dark=False, width=1280, script=True):
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     "--no-proxy-server", "--disable-background-networking", "--no-first-run"):
        options.add_argument(argument)
    options.add_argument(f"--window-size={width},900")
    options.add_experimental_option("prefs", {} if script else {
        "profile.managed_default_content_settings.javascript": 2})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    browser.set_page_load_timeout(PATIENCE)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
        {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False})
    return browser


def check(what, holds):
    if not holds:
        raise SystemExit(f"browse: {what}")


def text(browser):
    return browser.find_element(By.TAG_NAME, "body").text


def expect(browser, words):
    try:
        WebDriverWait(browser, PATIENCE).until(
            expected.text_to_be_present_in_element((By.TAG_NAME, "body"), words))
    except Exception:
        raise SystemExit(f"browse: no '{words}' on {browser.current_url}:\n{text(browser)}")


def is_complete(browser):
    """No part of the page is wider than the screen: tables scroll by themselves."""
    check(f"{browser.current_url} is wider than the screen", browser.execute_script(
        "return document.documentElement.scrollWidth <= window.innerWidth"))


def picture(browser, name):
    is_complete(browser)
    browser.save_screenshot(f"{PICTURES}/{name}.png")


def steady(action):
    """A refresh may replace an element after it was found."""
    for _ in range(5):
        try:
            return action()
        except StaleElementReferenceException:
            pass
    return action()


def click(browser, name):
    steady(lambda: browser.find_element(By.LINK_TEXT, name).click())


def by_keyboard(browser, name, most=200):
    """Presses what has this text, by the Tab key and Enter alone."""
    seen = []
    for _ in range(most):
        steady(lambda: browser.switch_to.active_element.send_keys(Keys.TAB))
        at, its_name, outline = steady(lambda: [
            (at.text, at.get_attribute("name"), at.value_of_css_property("outline-style"))
            for at in [browser.switch_to.active_element]][0])
        seen.append(at or its_name)
        if at == name:
            check(f"{name} has focus, which nobody sees", outline not in ("none", ""))
            steady(lambda: browser.switch_to.active_element.send_keys(Keys.ENTER))
            return
    raise SystemExit(f"browse: Tab does not reach '{name}', only {seen}")


def sign_in(browser, token="a-token-for-the-test"):
    browser.get(BASE + "/sign-in")
    browser.find_element(By.NAME, "name").send_keys("anna")
    browser.find_element(By.NAME, "token").send_keys(token + Keys.ENTER)


def row(browser, name, words):
    WebDriverWait(browser, PATIENCE, ignored_exceptions=[StaleElementReferenceException]).until(
        lambda b: any(name in r.text and words in r.text for r in b.find_elements(By.CSS_SELECTOR, "tbody tr")))


def give_reason(browser, reason):
    field = browser.find_element(By.NAME, "reason")
    check("the reason is where one begins to write", field == browser.switch_to.active_element)
    field.send_keys(reason + Keys.ENTER)


def read_only(browser):
    browser.get(BASE + "/")
    expect(browser, "orders[0]")
    check("the halt's reason", "ledger_account" in text(browser))
    check("without Kafka a lag is unknown", "unknown" in text(browser))
    for waits in ("https://api.example has been unreachable since 2027-01-15T08:00:00Z: Connection refused. 12 messages wait",
                  "orders[6] has waited for a lock", "session 42 (user bert) holds the lock"):
        check(f"'{waits}' is not on the page", waits in text(browser))
    check("who may not act is offered no action", "Resume" not in text(browser))
    picture(browser, "partitions")
    browser.get(BASE + "/dead-letter?id=1&do=replay")
    for hidden in ("account-1", "paid by card", "is not present", "event-1"):
        check(f"'{hidden}' is shown to everybody", hidden not in browser.page_source)
    picture(browser, "dead-letter-read-only")
    # The existence of a key reveals a customer.
    browser.get(BASE + "/dead-letters?record_key=account-1")
    expect(browser, "Only signed-in users can search by key")
    browser.get(BASE + "/keys?key=event-1")
    expect(browser, "Keys are shown only after you sign in")
    for page in ("/dead-letters", "/keys", "/outbox", "/calls", "/history", "/partition?topic=orders&partition=0"):
        browser.get(BASE + page)
        check(f"{page} has no heading", browser.find_element(By.TAG_NAME, "h1").text)
        check(f"{page} does not show how old it is", "Live · " in text(browser))
        is_complete(browser)
    browser.get(BASE + "/no-such-page")
    expect(browser, "This page does not exist.")


def actions(browser):
    sign_in(browser, "another-token-here")
    expect(browser, "The token is wrong.")
    sign_in(browser)
    expect(browser, "acting as anna")
    picture(browser, "partitions-acting")

    # By keyboard alone: to the halt's button, a reason, done.
    by_keyboard(browser, "Resume…")
    expect(browser, "Resume orders[0]?")
    picture(browser, "confirm")
    give_reason(browser, "the account is there")
    expect(browser, "orders[0] was halted and is running now")
    check("resumed", sql("SELECT state FROM pawl.processed_kafka_offsets WHERE partition = 0") == "running")
    check("its history", sql("SELECT reason FROM pawl.offset_history WHERE action = 'resume'")
          == "by anna (dashboard): the account is there")
    picture(browser, "partition")

    click(browser, "Pause…")
    expect(browser, "Pause orders[0]?")
    give_reason(browser, "maintenance")
    expect(browser, "orders[0] was running and is paused now")
    check("paused", sql("SELECT state FROM pawl.processed_kafka_offsets WHERE partition = 0") == "paused")
    check("its history", sql("SELECT reason FROM pawl.offset_history WHERE action = 'pause'")
          == "by anna (dashboard): maintenance")

    # A form that was opened before: the conflict is a sentence.
    browser.get(BASE + "/partition?topic=orders&partition=1&do=resume")
    sql("UPDATE pawl.processed_kafka_offsets SET state = 'running' WHERE partition = 1")
    give_reason(browser, "it is back")
    expect(browser, "orders[1] has changed: it is running")
    check("nothing was done", sql("SELECT count(*) FROM pawl.offset_history WHERE partition = 1") == "0")
    picture(browser, "conflict")

    browser.get(BASE + "/dead-letters?record_key=account-1")
    expect(browser, "account-1")
    check("one dead letter", len(browser.find_elements(By.CSS_SELECTOR, "tbody tr")) == 1)
    click(browser, "1")
    expect(browser, "paid by card")
    picture(browser, "dead-letter")
    click(browser, "Replay…")
    give_reason(browser, "the table is there now")
    expect(browser, "Dead letter 1 is replayed")
    check("its effect", sql("SELECT amount FROM ledger") == "1")
    check("its history", sql("SELECT reason FROM pawl.offset_history WHERE action = 'dlq replay'")
          == "dead letter 1: by anna (dashboard): the table is there now")

    browser.get(BASE + "/dead-letter?id=2&do=discard")
    sql("UPDATE pawl.dead_letters SET status = 'replayed', resolved_at = now(), resolved_by = 'bert'"
        " WHERE dead_letter_id = 2")
    give_reason(browser, "not needed")
    expect(browser, "Dead letter 2 is already replayed")
    browser.get(BASE + "/dead-letter?id=3&do=discard")
    give_reason(browser, "not needed")
    expect(browser, "Dead letter 3 is discarded")
    check("discarded", sql("SELECT status || ' ' || resolution FROM pawl.dead_letters WHERE dead_letter_id = 3")
          == "discarded by anna (dashboard): not needed")

    browser.get(BASE + "/keys?key=event-1")
    expect(browser, "Dead letters with this key")
    picture(browser, "keys")
    browser.get(BASE + "/dead-letters")
    check("a page has at most 100 dead letters", len(browser.find_elements(By.CSS_SELECTOR, "tbody tr")) == 100)
    first = steady(lambda: browser.find_element(By.CSS_SELECTOR, "tbody td").text)
    picture(browser, "dead-letters")
    click(browser, "Next page")
    check("the next page is another one", browser.find_element(By.CSS_SELECTOR, "tbody td").text != first)
    browser.get(BASE + "/history")
    expect(browser, "by anna (dashboard): not needed")
    picture(browser, "history")

    # The refresh brings what has changed without a click.
    browser.get(BASE + "/")
    sql("UPDATE pawl.processed_kafka_offsets SET state = 'paused' WHERE partition = 2")
    row(browser, "orders[2]", "paused")

    # Also while a user types, which is kept, and on the other pages.
    field = browser.find_element(By.NAME, "topic")
    field.send_keys("ord")
    sql("UPDATE pawl.processed_kafka_offsets SET state = 'paused' WHERE partition = 3")
    row(browser, "orders[3]", "paused")
    check("what was typed is there", field.get_attribute("value") == "ord")
    check("the focus is there", field == browser.switch_to.active_element)
    browser.execute_script("document.activeElement.blur()")
    sql("UPDATE pawl.processed_kafka_offsets SET state = 'paused' WHERE partition = 4")
    row(browser, "orders[4]", "paused")
    check("what was typed is there without the focus", field.get_attribute("value") == "ord")
    browser.get(BASE + "/history")
    sql("INSERT INTO pawl.offset_history (consumer_id, topic, partition, action, from_offset, to_offset, reason)"
        " VALUES (1, 'orders', 5, 'halt', 1006, 1006, 'a later halt')")
    expect(browser, "a later halt")
    browser.execute_script("getSelection().selectAllChildren(document.querySelector('h1'))")
    expect(browser, "Paused · ")
    expect(browser, "text is selected")
    browser.execute_script("getSelection().removeAllRanges()")
    expect(browser, "Live · ")

    # Another site's form, and one without its key.
    answers = browser.execute_script("""
      const send = (body) => fetch("/dead-letter", {method: "POST", redirect: "manual",
          headers: {"Content-Type": "application/x-www-form-urlencoded"}, body}).then((a) => a.status);
      return Promise.all([send("id=4&do=discard&reason=x"), send("id=4&do=discard&reason=x&form_key=" + "0".repeat(64))]);
    """)
    check(f"a form without its key is rejected: {answers}", answers == [403, 403])
    check("not discarded", sql("SELECT status FROM pawl.dead_letters WHERE dead_letter_id = 4") == "dead")
    check("no script sees the session", "pawl_session" not in browser.execute_script("return document.cookie"))

    by_keyboard(browser, "Sign out")
    expect(browser, "Sign in to act")


def other_screens():
    for name, dark, width in (("dark", True, 1280), ("narrow", False, 390), ("narrow-dark", True, 390)):
        browser = begin(dark, width)
        try:
            sign_in(browser)
            expect(browser, "acting as anna")
            picture(browser, f"partitions-{name}")
            for page, what in (("/dead-letters", "dead-letters"), ("/dead-letter?id=5&do=discard", "dead-letter"),
                               ("/outbox", "outbox"), ("/keys", "keys"), ("/calls", "calls"), ("/sign-in", "sign-in")):
                browser.get(BASE + page)
                picture(browser, f"{what}-{name}")
            check_console(browser)
        finally:
            browser.quit()


def not_fresh():
    """A page that cannot be refreshed shows that it is not fresh, until it is refreshed again."""
    browser = begin()
    try:
        browser.get(BASE + "/")
        expect(browser, "orders[0]")
        check("fresh", "Not fresh" not in text(browser))
        os.kill(SERVER, signal.SIGSTOP)
        try:
            expect(browser, "Not fresh: this page could not be refreshed")
        finally:
            os.kill(SERVER, signal.SIGCONT)
        picture(browser, "not-fresh")
        WebDriverWait(browser, PATIENCE, ignored_exceptions=[StaleElementReferenceException]).until(
            lambda b: "Not fresh" not in text(b))
        # A later version may have stored such a value: a page with the cause, and a page that is not fresh.
        sql("UPDATE pawl.processed_kafka_offsets SET state = 'dreaming' WHERE partition = 0")
        expect(browser, "Not fresh: this page could not be refreshed")
        browser.get(BASE + "/")
        expect(browser, "This version cannot read a value in the database")
        sql("UPDATE pawl.processed_kafka_offsets SET state = 'running' WHERE partition = 0")
        browser.get(BASE + "/")
        expect(browser, "orders[0]")
    finally:
        browser.quit()


def check_console(browser):
    """What the Content-Security-Policy refuses stands there; answers that are no 200 do as well."""
    said = [line["message"] for line in browser.get_log("browser") if "status of 4" not in line["message"]]
    check(f"the browser complains: {said}", not said)


def cookie_behind_tls():
    """A proxy says that it speaks TLS with the browser: the cookie never travels without."""
    where = urllib.parse.urlsplit(BASE)
    for headers, secure in (({}, False), ({"X-Forwarded-Proto": "https"}, True)):
        connection = http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE)
        connection.request("POST", "/sign-in", "name=tls&token=a-token-for-the-test",
                           {"Content-Type": "application/x-www-form-urlencoded",
                            "Origin": BASE, **headers})
        cookie = connection.getresponse().headers.get("Set-Cookie") or ""
        connection.close()
        check(f"the cookie is {cookie}", "HttpOnly" in cookie and ("Secure" in cookie) == secure)


def times():
    """How long the server takes for a page, median of five: printed for docs/dashboard.md, never judged."""
    where = urllib.parse.urlsplit(BASE)
    for page in ("/", "/dead-letters", "/dead-letters?status=all", "/dead-letter?id=5", "/keys?key=event-1",
                 "/outbox", "/calls", "/history", "/partition?topic=orders&partition=0"):
        taken = []
        for _ in range(5):
            begun = time.monotonic()
            connection = http.client.HTTPConnection(where.hostname, where.port, timeout=PATIENCE)
            connection.request("GET", page)
            answer = connection.getresponse()
            answer.read()
            connection.close()
            check(f"{page} is answered by {answer.status}", answer.status == 200)
            taken.append(time.monotonic() - begun)
        print(f"{page}  {sorted(taken)[2]:.3f} s")


def main():
    browser = begin()
    try:
        read_only(browser)
        actions(browser)
        check_console(browser)
    finally:
        browser.quit()
    without = begin(script=False)
    try:
        sign_in(without)
        expect(without, "acting as anna")
        without.get(BASE + "/dead-letter?id=6&do=discard")
        give_reason(without, "also without the script")
        expect(without, "Dead letter 6 is discarded")
        expect(without, "This page does not refresh automatically.")
    finally:
        without.quit()
    other_screens()
    not_fresh()
    cookie_behind_tls()
    times()


main()
