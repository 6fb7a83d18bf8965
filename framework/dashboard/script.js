// All works without it: it keeps pages that change fresh and says when it cannot, sends a form once, and
// knows "/".
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
  if (!main) return;
  let made = new Date();
  const notFresh = () => {
    if (main.querySelector("[data-not-fresh]")) return;
    const words = document.createElement("p");
    words.className = "message problem";
    words.dataset.notFresh = "";
    words.setAttribute("role", "alert");
    words.textContent = `Not fresh: what stands here is of ${made.toLocaleTimeString()}, and could not be ` +
      "brought up to date since. Load the page again to see why.";
    main.prepend(words);
  };
  const refresh = async () => {
    // Whoever types, or goes through the page by keyboard, is not disturbed.
    const busy = document.hidden || (main.contains(document.activeElement) && document.activeElement !== main) ||
      String(window.getSelection()) !== "";
    if (!busy) {
      try {
        const answer = await fetch(location.href, { credentials: "same-origin", cache: "no-store",
          signal: AbortSignal.timeout(10000) });
        if (answer.ok) {
          const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
          const scrolled = [...main.querySelectorAll(".scroll")].map((one) => one.scrollLeft);
          main.replaceChildren(...fresh.childNodes);
          main.querySelectorAll(".scroll").forEach((one, i) => { one.scrollLeft = scrolled[i] || 0; });
          made = new Date();
        } else {
          notFresh();
        }
      } catch {
        notFresh();
      }
    }
    setTimeout(refresh, Number(main.dataset.refresh) * 1000);
  };
  setTimeout(refresh, Number(main.dataset.refresh) * 1000);
})();
