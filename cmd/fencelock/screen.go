package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"charm.land/bubbles/v2/table"
	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/scripts"
)

// screen is what top shows.
type screen struct {
	v     *viewer
	ctx   context.Context
	every time.Duration
	where string
	jury  jury // of a quorum

	used             // of the last look
	shown  []lockRow // those that the filter lets through, sorted
	looked time.Time
	err    error  // of the last look
	said   string // what became of the last key
	by     string // one of orders
	filter string

	width, height int
	list          table.Model
	input         textinput.Model
	typing        mode
	detail        string // the name of the lock that is shown, "" for the list
	about         string // what is said of it
	freeing       inspect.Lock
}

// mode is what the keyboard types.
type mode int

const (
	keys mode = iota
	filtering
	freeing
)

// These tell the screen what has come from Redis.
type (
	lookMsg struct {
		used
		about string
		jury  jury
		err   error
	}
	tickMsg  struct{}
	aboutMsg string
	saidMsg  string
)

// Init implements tea.Model.
func (s *screen) Init() tea.Cmd { return s.look("") }

// look asks Redis for the locks, and for all about one of them.
func (s *screen) look(detail string) tea.Cmd {
	return func() tea.Msg {
		var m lookMsg
		var err error
		m.used, err = s.v.used(s.ctx)
		m.jury = s.v.judge(s.ctx)
		if err == nil && detail != "" {
			d, wrong := s.v.about(s.ctx, detail, 0)
			if err = wrong; err == nil {
				var text bytes.Buffer
				_ = d.print(&text, false)
				m.about = text.String()
			}
		}
		m.err = err
		return m
	}
}

// Update implements tea.Model.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
		s.arrange()
	case lookMsg:
		s.take(m)
		return s, tea.Tick(s.every, func(time.Time) tea.Msg { return tickMsg{} })
	case tickMsg:
		return s, s.look(s.detail)
	case aboutMsg:
		s.about = string(m)
	case saidMsg:
		s.said = string(m)
	case tea.KeyPressMsg:
		return s, s.key(m)
	}
	return s, nil
}

// take keeps the answer of a look. After an error the last list stays.
func (s *screen) take(m lookMsg) {
	if s.err = m.err; s.err == nil {
		s.used, s.looked, s.jury = m.used, time.Now(), m.jury
		if m.about != "" {
			s.about = m.about
		}
	}
	s.arrange()
}

// arrange filters and sorts, and keeps the cursor on its lock.
func (s *screen) arrange() {
	on := s.selected()
	s.shown = nil
	for _, r := range s.rows {
		if strings.Contains(strings.Join(append(topCells(&r), r.field()), " "), s.filter) {
			s.shown = append(s.shown, r)
		}
	}
	sortRows(s.shown, s.by)
	slices.SortStableFunc(s.shown, func(a, b lockRow) int { return cmp.Compare(rank(&a), rank(&b)) })
	if s.width == 0 {
		return
	}
	widths := make([]int, len(topColumns))
	rows := make([]table.Row, len(s.shown))
	for i, r := range s.shown {
		rows[i] = topCells(&r)
	}
	room := s.width // for a name and a holder: all other columns are shown whole
	for i, title := range topColumns {
		widths[i] = lipgloss.Width(title)
		for _, row := range rows {
			widths[i] = max(widths[i], lipgloss.Width(row[i]))
		}
		if room--; i != 1 && i != 2 {
			room -= widths[i]
		}
	}
	widths[2] = min(widths[2], max(room/2, room-widths[1], 10))
	widths[1] = min(widths[1], max(room-widths[2], 10))
	for _, row := range rows {
		row[1] = plain.Brief(row[1], widths[1])
	}
	columns := make([]table.Column, len(topColumns))
	for i, title := range topColumns {
		columns[i] = table.Column{Title: title, Width: widths[i]}
	}
	s.list.SetRows(nil) // rows must fit the columns
	s.list.SetColumns(columns)
	s.list.SetRows(rows)
	s.list.SetWidth(s.width)
	s.list.SetHeight(max(s.height-1-len(s.head()), 2))
	s.list.SetCursor(max(slices.IndexFunc(s.shown, func(r lockRow) bool { return on != nil && r.lock.Name == on.lock.Name }), 0))
}

// topColumns are those of top.
var topColumns = append([]string{"STATE"}, lockColumns...)

func topCells(r *lockRow) []string { return append([]string{r.state()}, r.cells()...) }

// rank is 0 for a lock that is stuck.
func rank(r *lockRow) int {
	if r.Stuck != "" {
		return 0
	}
	return 1
}

// selected is the lock that the cursor is on, nil for none.
func (s *screen) selected() *lockRow {
	if i := s.list.Cursor(); i >= 0 && i < len(s.shown) {
		r := s.shown[i]
		return &r
	}
	return nil
}

// key does what a key asks for.
func (s *screen) key(k tea.KeyPressMsg) tea.Cmd {
	if k.String() == "ctrl+c" {
		return tea.Quit
	}
	if s.typing != keys {
		return s.typed(k)
	}
	s.said = ""
	switch k.String() {
	case "q":
		return tea.Quit
	case "esc":
		s.detail, s.about, s.filter = "", "", ""
		s.arrange()
	case "a", "t", "w", "n":
		s.by = map[string]string{"a": "age", "t": "ttl", "w": "waiters", "n": "name"}[k.String()]
		s.arrange()
	case "/":
		return s.ask(filtering, "Filter: ")
	case "enter":
		if r := s.selected(); r != nil && s.detail == "" {
			s.detail = r.lock.Name
			return s.lookNow()
		}
	case "f":
		if r := s.selected(); r != nil {
			if r.of != nil {
				return say(fmt.Sprintf("free one of its permits: fencelock force-unlock '%s'", plain.Name(scripts.PermitsOf(r.Name, 1).SlotName(0))))
			}
			if r.lock.Holder == nil {
				return say("nobody holds it")
			}
			s.freeing = r.lock
			return s.ask(freeing, fmt.Sprintf("Take %s away from %s? Type the lock's name: ", plain.Brief(plain.Name(r.Name), maxName/2), process(r.lock.Holder.By, r.lock.Holder.Field)))
		}
	default:
		if s.detail == "" {
			var cmd tea.Cmd
			s.list, cmd = s.list.Update(k)
			return cmd
		}
	}
	return nil
}

func say(text string) tea.Cmd { return func() tea.Msg { return saidMsg(text) } }

// lookNow looks at the lock that is to be shown, without waiting for the next look at all.
func (s *screen) lookNow() tea.Cmd {
	s.about = "..."
	look := s.look(s.detail)
	return func() tea.Msg {
		m := look().(lookMsg)
		if m.err != nil {
			return saidMsg(plain.Line(s.v.at.said(m.err).Error()))
		}
		return aboutMsg(m.about)
	}
}

// ask begins to read what is typed.
func (s *screen) ask(m mode, prompt string) tea.Cmd {
	s.typing = m
	s.input.Reset()
	s.input.Prompt = prompt
	s.input.SetWidth(max(s.width-lipgloss.Width(prompt)-1, 10))
	return s.input.Focus()
}

// typed takes a key of what is typed.
func (s *screen) typed(k tea.KeyPressMsg) tea.Cmd {
	var cmd tea.Cmd
	switch k.String() {
	case "esc":
		if s.typing == filtering {
			s.filter = ""
			s.arrange()
		}
		s.typing = keys
		return nil
	case "enter":
		was := s.typing
		s.typing = keys
		if was == freeing {
			return s.free(s.input.Value())
		}
		return nil
	default:
		s.input, cmd = s.input.Update(k)
	}
	if s.typing == filtering {
		s.filter = s.input.Value()
		s.arrange()
	}
	return cmd
}

// free releases the hold that was shown when its key was pressed, if the name is right.
func (s *screen) free(typed string) tea.Cmd {
	l := s.freeing
	if typed != l.Name && typed != plain.Name(l.Name) { // what cannot be typed is typed as it is shown
		return say("that is not the name: nothing was released")
	}
	return func() tea.Msg {
		err := s.v.mayFree(s.ctx, l)
		var said string
		if err == nil {
			said, err = s.v.free(s.ctx, l)
		}
		if err != nil {
			said = plain.Line(reason(s.v.at.said(err)))
		}
		return saidMsg(said)
	}
}

// summary is the first line.
func (s *screen) summary() string {
	waiting, stuck := 0, 0
	for _, r := range s.rows {
		waiting += r.Waiting
		stuck += 1 - rank(&r)
	}
	more := ""
	if s.unlisted > 0 {
		more = " (" + notListed(s.unlisted) + ")"
	}
	return fmt.Sprintf("fencelock  %s  %s  locks: %d%s, stuck: %d, waiting clients: %d  by %s", s.where+s.jury.count, s.looked.Format(time.TimeOnly), len(s.rows), more, stuck, waiting, s.by)
}

// head is what stands above the list.
func (s *screen) head() (lines []string) {
	switch {
	case s.err != nil:
		return s.wrap(plain.Line(s.v.at.said(s.err).Error()))
	case s.looked.IsZero():
		return []string{"fencelock  " + s.where}
	case s.jury.nobody != "":
		lines = s.wrap(s.jury.nobody)
	}
	lines = append(lines, s.summary())
	if len(s.jury.notes) > 0 {
		lines = append(lines, s.wrap(strings.Join(s.jury.notes, "; "))...)
	}
	return append(lines, cycleText(s.cycles, cmp.Or(s.width, textWidth))...)
}

// wrap is a text in lines that fit the screen; one line where there is none.
func (s *screen) wrap(text string) []string {
	return strings.Split(lipgloss.NewStyle().Width(s.width).Render(text), "\n")
}

// View implements tea.Model.
func (s *screen) View() tea.View {
	body := s.list.View()
	if s.detail != "" {
		body = s.about
	}
	last := "a t w n sort  / filter  Enter show  f free  Esc back  q quit"
	switch {
	case s.typing != keys:
		last = s.input.View()
	case s.said != "":
		last = s.said
	case s.filter != "":
		last = fmt.Sprintf("only what contains %q; Esc shows all", s.filter)
	case s.err != nil && !s.looked.IsZero():
		last = "what is shown is of " + s.looked.Format(time.TimeOnly)
	case s.detail == "" && s.selected() != nil && s.selected().Stuck != "":
		last = "stuck: " + s.selected().Stuck + "  Enter show  f free  q quit"
	}
	lines := strings.Split(strings.TrimRight(body, "\n"), "\n")
	head := s.head()
	room := max(s.height-1-len(head), 0)
	lines = slices.Concat(head, lines[:min(len(lines), room)], make([]string, max(room-len(lines), 0)), []string{last})
	for i := range lines {
		lines[i] = lipgloss.NewStyle().MaxWidth(s.width).Render(lines[i])
	}
	v := tea.NewView(strings.Join(lines, "\n"))
	v.AltScreen = true
	return v
}
