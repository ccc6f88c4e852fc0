// Pictures draws the pictures of docs/pictures that show how something works: they are made again from this program, and its test says where they
// are not.
//
//	go run ./internal/pictures    # from the root of the repository
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// pictures are all, by the names of their files.
var pictures = map[string]func() string{"token.svg": token, "line.svg": line, "hold.svg": hold}

func main() {
	for name, draw := range pictures {
		path := filepath.Join("docs", "pictures", name)
		if err := os.WriteFile(path, []byte(draw()), 0o644); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println(path)
	}
}

// style has the colours, for a light and for a dark page.
const style = `<style>
  svg { --text: #1f2328; --quiet: #59636e; --line: #8c959f; --a: #0969da; --b: #8250df; --good: #1a7f37; --bad: #cf222e; --box: #f6f8fa; --page: #ffffff; --on: #ffffff }
  @media (prefers-color-scheme: dark) {
    svg { --text: #e6edf3; --quiet: #9198a1; --line: #6e7681; --a: #4493f8; --b: #ab7df8; --good: #3fb950; --bad: #f85149; --box: #1c2128; --page: #0d1117; --on: #0d1117 }
  }
  text { font: 13px system-ui, sans-serif; fill: var(--text) }
  .quiet { fill: var(--quiet) } .a { fill: var(--a) } .b { fill: var(--b) } .good { fill: var(--good) } .bad { fill: var(--bad) }
  .page { fill: var(--page) } .box { fill: var(--box); stroke: var(--line) } .on { fill: var(--on) }
  path, line { stroke: var(--line); stroke-width: 1.5; fill: none } path.good, line.good { stroke: var(--good); fill: none } path.bad, line.bad { stroke: var(--bad); fill: none }
  marker path { fill: var(--line); stroke: none } marker.good path { fill: var(--good) } marker.bad path { fill: var(--bad) }
</style>
`

// A drawing is a picture that is being drawn.
type drawing struct{ strings.Builder }

// draw returns a picture of this size, with a text for who does not see it.
func draw(width, height int, what string, parts func(d *drawing)) string {
	d := &drawing{}
	fmt.Fprintf(d, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img">`+"\n<title>%s</title>\n%s<defs>\n", width, height, width, height, what, style)
	for _, class := range []string{"", "good", "bad"} {
		fmt.Fprintf(d, `<marker id="tip%s" class="%s" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z"/></marker>`+"\n", class, class)
	}
	fmt.Fprintf(d, "</defs>\n<rect class=\"page\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n", width, height)
	parts(d)
	d.WriteString("</svg>\n")
	return d.String()
}

// text writes a line that begins at x, or is around x with anchor "middle".
func (d *drawing) text(x, y int, class, anchor, text string) {
	fmt.Fprintf(d, `<text x="%d" y="%d" class="%s" text-anchor="%s">%s</text>`+"\n", x, y, class, anchor, text)
}

// bar draws a bar with a text on it.
func (d *drawing) bar(x, y, width int, class, text string) {
	fmt.Fprintf(d, `<rect x="%d" y="%d" width="%d" height="26" rx="4" class="%s"/>`+"\n", x, y, width, class)
	if text != "" {
		d.text(x+width/2, y+18, "on", "middle", text)
	}
}

// box draws a box with two lines of text.
func (d *drawing) box(x, y, width int, title, below string) {
	fmt.Fprintf(d, `<rect x="%d" y="%d" width="%d" height="48" rx="6" class="box"/>`+"\n", x, y, width)
	if below == "" {
		d.text(x+width/2, y+29, "", "middle", title)
		return
	}
	d.text(x+width/2, y+20, "", "middle", title)
	d.text(x+width/2, y+38, "quiet", "middle", below)
}

// arrow draws an arrow along a path.
func (d *drawing) arrow(class, path string) {
	fmt.Fprintf(d, `<path class="%s" d="%s" marker-end="url(#tip%s)"/>`+"\n", class, path, class)
}
