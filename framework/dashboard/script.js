// Everything works without this script. It refreshes pages, shows how old they are, sends a form only once, and
// moves the focus to the search at "/".
"use strict";
(() => {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    const search = document.querySelector("[data-slash]");
    if (!search) return;
    event.preventDefault();
    search.focus();
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-once]")) return;
    for (const button of event.target.querySelectorAll("button")) button.disabled = true;
  });
  window.addEventListener("pageshow", () => {
    for (const button of document.querySelectorAll("[data-once] button")) button.disabled = false;
  });
  const main = document.querySelector("main[data-refresh]");
  const live = document.querySelector("[data-live]");
  if (!main || !live) return;
  const interval = Number(main.dataset.refresh) * 1000;
  let made = performance.now();
  let paused = ""; // why the page is not refreshed
  let failed = false; // the last refresh did

  const seconds = () => Math.round((performance.now() - made) / 1000);
  const showAge = () => {
    const state = failed ? "Not fresh" : paused ? "Paused" : "Live";
    live.textContent = `${state} · ${seconds()} s ago${!failed && paused ? `: ${paused}` : ""}`;
    live.className = `live ${failed ? "bad" : paused ? "warn" : ""}`;
  };
  const notFresh = () => {
    failed = true;
    if (main.querySelector("[data-not-fresh]")) return;
    const words = document.createElement("p");
    words.className = "message problem";
    words.dataset.notFresh = "";
    words.setAttribute("role", "alert");
    words.textContent = "Not fresh: this page could not be refreshed. Its age is shown above. " +
      "Reload it to see the reason.";
    main.prepend(words);
  };

  const isFilledIn = (form) => [...form.elements].some((one) =>
    one.type === "checkbox" ? one.checked !== one.defaultChecked
      : one.tagName === "SELECT" ? ![...one.options].every((option) => option.selected === option.defaultSelected)
      : one.defaultValue !== undefined && one.value !== one.defaultValue);
  const forms = (top) => [...top.querySelectorAll("form")];
  const nameOf = (one) => [one.tagName, one.getAttribute("href"), one.getAttribute("aria-label")].join(" ");
  const chain = (one, top) => (one === top ? [] : [...chain(one.parentNode, top), one]);
  // Replaces the content of `shown` by that of `fresh`, except `kept`, which stays in the place of `twin`. False,
  // and nothing changed: the two stand in different places.
  const replaceAround = (shown, fresh, kept, twin) => {
    const path = chain(kept, shown);
    const freshPath = chain(twin, fresh);
    if (path.map((one) => one.tagName).join() !== freshPath.map((one) => one.tagName).join()) return false;
    path.forEach((one, i) => {
      const nodes = [...freshPath[i].parentNode.childNodes];
      const place = nodes.indexOf(freshPath[i]);
      for (const other of [...one.parentNode.childNodes]) if (other !== one) other.remove();
      one.before(...nodes.slice(0, place));
      one.after(...nodes.slice(place + 1));
    });
    return true;
  };
  // False: a form with input has no counterpart on the fresh page.
  const replace = (fresh) => {
    // A result is reported once; it stays until the reader leaves the page.
    const done = main.querySelector(":scope > .message.done");
    const heading = fresh.querySelector("h1");
    if (done && heading && !fresh.querySelector(":scope > .message.done")) heading.after(done.cloneNode(true));
    const scrolls = ".scroll, pre";
    const scrolled = [...main.querySelectorAll(scrolls)].map((one) => [one.scrollLeft, one.scrollTop]);
    const focus = document.activeElement;
    const form = forms(main).find((one) => one.contains(focus)) || forms(main).find(isFilledIn);
    if (form) {
      const twin = forms(fresh)[forms(main).indexOf(form)];
      if (!twin || twin.getAttribute("action") !== form.getAttribute("action")) return false;
      if (!replaceAround(main, fresh, form, twin)) return false;
    } else {
      main.replaceChildren(...fresh.childNodes);
    }
    if (focus && !focus.isConnected) {
      const again = [...main.querySelectorAll(focus.tagName)].find((one) => nameOf(one) === nameOf(focus));
      if (again) again.focus({ preventScroll: true });
    }
    main.querySelectorAll(scrolls).forEach((one, i) => {
      [one.scrollLeft, one.scrollTop] = scrolled[i] || [0, 0];
    });
    return true;
  };
  const refresh = async () => {
    if (String(window.getSelection()) !== "") {
      paused = "text is selected";
      return;
    }
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store",
        signal: AbortSignal.timeout(10000) });
      const text = answer.ok ? await answer.text() : "";
      const fresh = new DOMParser().parseFromString(text, "text/html").querySelector("main");
      if (!answer.ok || !fresh) return notFresh();
      paused = replace(fresh) ? "" : "a form is open and the page has changed";
      if (paused) return;
      failed = false;
      made = performance.now();
    } catch {
      notFresh();
    }
  };
  let refreshing = false;
  const turn = async () => {
    // A page in the background is not visible.
    if (refreshing || document.hidden) return;
    refreshing = true;
    await refresh();
    refreshing = false;
    showAge();
  };
  setInterval(turn, interval);
  setInterval(showAge, 1000);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && performance.now() - made > interval) turn();
  });
  showAge();
})();
