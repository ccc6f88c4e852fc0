package browsertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// tabTo presses Tab until the focus is on what matches the selector. What has the focus is seen to have it.
func (b *tab) tabTo(selector string) {
	b.t.Helper()
	for range 60 {
		b.run(chromedp.KeyEvent(kb.Tab))
		if get[string](b, "document.activeElement && document.activeElement !== document.body ? getComputedStyle(document.activeElement).outlineStyle : 'body'") == "none" {
			b.t.Errorf("nobody sees that the focus is on %s", get[string](b, "document.activeElement.outerHTML"))
		}
		if get[bool](b, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			return
		}
	}
	b.t.Fatalf("no Tab leads to %s", selector)
}

// From the page of locks to a freed lock, without a mouse.
func TestKeyboard(t *testing.T) {
	b := open(t)
	b.hold(10, "account:42", "other")
	b.wait("account:42")
	b.run(chromedp.Navigate(b.url))
	b.says("1 lock is stuck")
	b.run(chromedp.KeyEvent("")) // nothing: the page has the keyboard
	b.tabTo(`[data-key="first"]`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.says("The line, the next one first")
	b.tabTo(`[data-key="free"]`)
	b.run(chromedp.KeyEvent(kb.Enter))
	b.says("Type the name again")
	b.tabTo(`input[name="typed"]`)
	b.run(chromedp.KeyEvent("account:4" + kb.Enter))
	b.says("Nothing was freed")
	locktest.Equal(t, "locks", b.rdb.Exists(t.Context(), "account:42").Val(), 1)
	b.tabTo(`input[name="typed"]`)
	b.run(chromedp.KeyEvent("account:42" + kb.Enter))
	b.says("Freed: account:42")
	locktest.Equal(t, "locks", b.rdb.Exists(t.Context(), "account:42").Val(), 0)
	locktest.Equal(t, "other locks", b.rdb.Exists(t.Context(), "other").Val(), 1)
}

// Everything fits into 400 pixels, whatever the names are.
func TestNarrow(t *testing.T) {
	b := open(t)
	long := strings.Repeat("a-very-long-name-of-a-lock:", 12)
	b.hold(10, "account:42", long, strings.Repeat("x", 300))
	b.wait(long)
	b.run(chromedp.EmulateViewport(400, 800, chromedp.EmulateMobile))
	for _, path := range []string{"", "lock?name=" + long, "clients", "client?id=" + id(1), "free?token=0&name=" + long + "&holder=" + id(1) + ":1", "nothing.here"} {
		b.run(chromedp.Navigate(b.url+path), chromedp.WaitReady("#live"))
		locktest.Equal(t, path+": width of the screen", get[int](b, "innerWidth"), 400)
		if width := get[int](b, "document.documentElement.scrollWidth"); width > 400 {
			t.Errorf("%q is %d wide because of %s", path, width, get[string](b, "[...document.querySelectorAll('*')].filter(e => e.getBoundingClientRect().right > 400).at(-1)?.outerHTML"))
		}
	}
}

// contrasts are the texts whose contrast with what is behind them is less than the 4.5 of WCAG 2, level AA.
const contrasts = `(() => {
  const numbers = (color) => color.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => { for (; e; e = e.parentElement) { const c = numbers(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] === 1) return c; } return [255, 255, 255]; };
  const bad = [];
  for (const e of document.querySelectorAll("body *")) {
    if (e.closest("thead") || ![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim()) || !e.getClientRects().length) continue;
    const [a, b] = [light(numbers(getComputedStyle(e).color)), light(behind(e))].sort();
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) bad.push(ratio.toFixed(2) + " " + e.outerHTML);
  }
  return bad;
})()`

// The page is dark where the system is, and can be read in either.
func TestDark(t *testing.T) {
	b := open(t)
	b.hold(10, "account:42", "other", "waited for")
	b.wait("account:42")
	for _, scheme := range []string{"light", "dark"} {
		b.system(scheme)
		for _, path := range []string{"", "lock?name=account:42", "clients", "client?id=" + id(1), "free?token=0&name=account:42&holder=" + id(1) + ":1"} {
			b.run(chromedp.Navigate(b.url+path), chromedp.WaitReady("#live"))
			paper := get[string](b, "getComputedStyle(document.body).backgroundColor")
			if isDark := paper != "rgb(255, 255, 255)"; isDark != (scheme == "dark") {
				t.Errorf("%s, %q: the paper is %s", scheme, path, paper)
			}
			for _, bad := range get[[]string](b, contrasts) {
				t.Errorf("%s, %q: contrast %s", scheme, path, bad)
			}
		}
	}
}

// A refresh takes neither the focus nor the place, and opens and closes nothing.
func TestRefreshKeepsThePlace(t *testing.T) {
	b := open(t)
	var names []string
	for i := range 60 {
		names = append(names, fmt.Sprintf("lock-%02d", i))
	}
	b.hold(10, names...)
	b.run(chromedp.EmulateViewport(1000, 600), chromedp.Navigate(b.url), chromedp.WaitReady("#live"))
	const key = `[data-key="lock lock-30"]`
	get[any](b, `document.querySelector("#live details").open = true; document.querySelector('`+key+`').focus(); scrollTo(0, 700)`)
	locktest.Equal(t, "place", get[int](b, "scrollY"), 700)
	b.wait("lock-50") // goes to the top
	b.says("1 lock is stuck")
	locktest.Equal(t, "place after the refresh", get[int](b, "scrollY"), 700)
	locktest.Equal(t, "the focus is where it was", get[bool](b, `document.activeElement.matches('`+key+`')`), true)
	locktest.Equal(t, "what was open is open", get[bool](b, `document.querySelector("#live details").open`), true)
	b.until(`document.title.startsWith("(1 stuck)")`)

	locktest.NoError(t, b.rdb.Del(t.Context(), "lock-30").Err()) // with the focus
	b.until(`!document.querySelector('` + key + `')`)
	locktest.Equal(t, "the focus is on the page's live part", get[string](b, "document.activeElement.id"), "live")

	get[any](b, `getSelection().selectAllChildren(document.querySelector("h1"))`)
	b.run(chromedp.Click("#pause"))
	b.says("Paused at")
}

// The page asks for nothing while nobody sees it, or it is paused, and goes on then. When the site does not answer it says so.
func TestLive(t *testing.T) {
	realtime.Test(t, "a browser that asks for nothing within 4 s")
	b := open(t)
	b.hold(10, "account:42")
	b.run(chromedp.Navigate(b.url), chromedp.WaitReady("#live"))
	grows := func(what string) {
		t.Helper()
		before := b.asks.Load()
		redistest.Eventually(t, time.Minute, func() bool { return b.asks.Load() > before+1 }, "%s", what)
	}
	// stands waits for twice the time between two refreshes: one that was under way has come before.
	stands := func(what string) {
		t.Helper()
		time.Sleep(time.Second)
		before := b.asks.Load()
		time.Sleep(4 * time.Second)
		locktest.Equal(t, "requests of a page that "+what, b.asks.Load()-before, 0)
	}
	grows("the page renews itself")
	get[any](b, `Object.defineProperty(document, "hidden", {configurable: true, get: () => true}); document.dispatchEvent(new Event("visibilitychange"))`)
	stands("nobody sees")
	get[any](b, `delete document.hidden; document.dispatchEvent(new Event("visibilitychange"))`)
	grows("it goes on when it is seen")
	b.run(chromedp.Click("#pause"))
	stands("is paused")
	b.run(chromedp.Click("#pause"))
	grows("it goes on after a pause")

	b.away.Store(true)
	b.says("not renewed: Redis does not answer")
	b.says("account:42") // what was there stays
	b.away.Store(false)
	b.until(`!document.body.innerText.includes("not renewed")`)
}

// Without JavaScript the page shows the same, and can do the same.
func TestWithoutScript(t *testing.T) {
	b := open(t)
	b.hold(10, "account:42")
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	locktest.NoError(t, err)
	b.run(chromedp.Navigate(b.url))
	b.says("No lock looks stuck")
	locktest.Equal(t, "the button of the script is hidden", get[bool](b, `document.getElementById("pause").hidden`), true)
	b.wait("account:42")
	redistest.Eventually(t, time.Minute, func() bool { // what was found may be shown for a second
		b.run(chromedp.Click("#refresh"))
		b.until(`document.readyState === "complete"`)
		return get[bool](b, `document.body !== null && document.body.innerText.includes("1 lock is stuck")`) // the next page may just begin
	}, "Refresh shows what is new")
	locktest.Equal(t, "requests of a script", b.asks.Load(), 0)
	b.run(chromedp.Click(`[data-key="first"]`))
	b.says("The line")
	b.run(chromedp.Click(`[data-key="free"]`), chromedp.SendKeys(`input[name="typed"]`, "account:42"), chromedp.Click("button.danger"))
	b.says("Freed: account:42")
}
