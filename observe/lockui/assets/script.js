// The part of the page with the id live is fetched again every two seconds while the page is visible. Focus, an open <details>
// and the scroll position stay. Without this script the link Refresh does the same.
"use strict";
(() => {
  const every = 2000;
  const state = document.getElementById("state");
  const pause = document.getElementById("pause");
  const address = new URL(location.href);
  address.searchParams.set("format", "fragment");
  let paused = false;
  let since = new Date();
  let timer;

  const byKey = (root, key) => [...root.querySelectorAll("[data-key]")].find((e) => e.dataset.key === key);

  function put(text) {
    const old = document.getElementById("live");
    const fresh = new DOMParser().parseFromString(text, "text/html").getElementById("live");
    if (!fresh) throw new Error("the answer is another page: is the login over?");
    for (const open of old.querySelectorAll("details[open][data-key]")) {
      const same = byKey(fresh, open.dataset.key);
      if (same) same.open = true;
    }
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const key = focused && focused.closest("[data-key]") && focused.closest("[data-key]").dataset.key;
    const summary = focused && focused.tagName === "SUMMARY";
    const { scrollX, scrollY } = window;
    old.replaceWith(document.adoptNode(fresh));
    document.title = fresh.dataset.title;
    if (focused) {
      let same = key && byKey(fresh, key);
      if (same && summary) same = same.querySelector("summary");
      if (!same) {
        fresh.tabIndex = -1; // what had the focus is gone
        same = fresh;
      }
      same.focus({ preventScroll: true });
    }
    window.scrollTo({ left: scrollX, top: scrollY, behavior: "instant" });
  }

  function selecting() {
    const s = getSelection();
    return s && !s.isCollapsed && document.getElementById("live").contains(s.anchorNode);
  }

  async function refresh() {
    clearTimeout(timer);
    if (paused || document.hidden) return;
    if (!selecting()) {
      try {
        const answer = await fetch(address, { cache: "no-store", signal: AbortSignal.timeout(15000) });
        if (!answer.ok) throw new Error(answer.status === 503 ? "Redis does not answer" : "status " + answer.status);
        const text = await answer.text();
        if (!paused && !selecting()) put(text);
        since = new Date();
        say("", false);
      } catch (e) {
        say("As of " + since.toLocaleTimeString() + ", not renewed: " + e.message, true);
      }
    }
    clearTimeout(timer);
    timer = setTimeout(refresh, every);
  }

  function say(text, bad) {
    if (state.textContent !== text) state.textContent = text;
    document.body.classList.toggle("stale", bad);
  }

  if (document.querySelector("form.free")) return; // what is about to be forced open stays as it was shown
  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    say(paused ? "Paused at " + since.toLocaleTimeString() : "", false);
    refresh();
  });
  document.addEventListener("visibilitychange", refresh);
  timer = setTimeout(refresh, every);
})();
