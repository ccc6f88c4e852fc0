package lockui

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fencelock/fencelock/internal/plain"
)

//go:embed assets
var assets embed.FS

// maxLocks is how many locks, or clients, are on one page.
const maxLocks = 500

var pages = func() map[string]*template.Template {
	all := map[string]*template.Template{}
	layout := template.Must(template.New("layout.html").Funcs(template.FuncMap{
		"count": count, "printable": plain.Name, "line": plain.Line, "brief": brief, "short": short, "at": at,
	}).ParseFS(assets, "assets/layout.html", "assets/parts.html"))
	for _, name := range []string{"locks", "lock", "semaphore", "clients", "client", "free", "fail"} {
		all[name] = template.Must(template.Must(layout.Clone()).ParseFS(assets, "assets/"+name+".html"))
	}
	return all
}()

// show writes the page, the part of it that renews itself, or its data.
func (h *handler) show(w http.ResponseWriter, r *http.Request, status int, page string, data any) {
	var body bytes.Buffer
	var err error
	kind := "text/html; charset=utf-8"
	switch r.URL.Query().Get("format") {
	case "json":
		kind = "application/json"
		encoder := json.NewEncoder(&body)
		encoder.SetIndent("", "  ")
		err = encoder.Encode(data)
		text := plain.JSON(body.Bytes())
		body.Reset()
		body.Write(text)
	case "fragment":
		err = pages[page].ExecuteTemplate(&body, "fragment", data)
	default:
		err = pages[page].ExecuteTemplate(&body, "layout.html", data)
	}
	if err != nil {
		h.log.Error("lockui: the page cannot be written", "page", page, "error", err)
		http.Error(w, "The page cannot be written; the log says why.", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = w.Write(body.Bytes())
}

type failPage struct {
	Error string `json:"error"`
}

func (h *handler) fail(w http.ResponseWriter, r *http.Request, status int, text string) {
	h.show(w, r, status, "fail", failPage{text})
}

// away answers that Redis cannot be asked.
func (h *handler) away(w http.ResponseWriter, r *http.Request, err error) {
	text := plain.Error(err, "")
	if refusal := plain.Refusal(err); refusal != "" {
		text = "Redis refused: " + refusal
	} else if plain.Away(err, "") == "" {
		text = "Redis did not answer: " + text
	}
	h.fail(w, r, http.StatusServiceUnavailable, strings.TrimRight(text, ".")+".")
}

// surveyed is what pages tell of the inspection.
type surveyed struct {
	At        time.Time `json:"at"`
	Trouble   []string  `json:"trouble,omitempty"`     // why less is seen than usual
	Nobody    string    `json:"no_majority,omitempty"` // why nobody gets a lock of a quorum
	Away      []string  `json:"away,omitempty"`        // servers of a quorum that do not count, and why
	Sources   []string  `json:"sources"`
	CannotSee []string  `json:"cannot_see"`
}

func newSurveyed(s *survey) surveyed {
	used, blind := s.sources()
	nobody, away := s.awayServers()
	return surveyed{At: s.at.UTC(), Trouble: s.trouble(), Nobody: nobody, Away: away, Sources: used, CannotSee: blind}
}

// status is 503 where nobody gets a lock, but for the part of a page that renews itself: an open page does not renew itself by an error.
func (s surveyed) status(r *http.Request) int {
	if s.Nobody != "" && r.URL.Query().Get("format") != "fragment" {
		return http.StatusServiceUnavailable
	}
	return http.StatusOK
}

type locksPage struct {
	surveyed
	Known  int          `json:"known"`  // locks that were found
	Chosen int          `json:"chosen"` // of them, by the filters
	Stuck  int          `json:"stuck"`  // of those below
	Waited int          `json:"waited"`
	Free   int          `json:"free"` // on this page; free by now, and not shown
	Locks  []*shownLock `json:"locks"`
	Cycles []shownCycle `json:"cycles,omitempty"`
	Page   int          `json:"page"`
	Pages  int          `json:"pages"`

	Filter   filter       `json:"-"`
	Hosts    []string     `json:"-"`
	LongHold milliseconds `json:"-"`
}

// Previous and Next are the pages beside this one.
func (p locksPage) Previous() string { return p.Filter.Link(p.Page - 1) }
func (p locksPage) Next() string     { return p.Filter.Link(p.Page + 1) }

// First is the lock to look at first, if there is one that is stuck.
func (p locksPage) First() *shownLock {
	if p.Stuck == 0 {
		return nil
	}
	return p.Locks[0]
}

// filter is what a person looks for.
type filter struct {
	Name   string // a part of it
	Host   string
	Older  string // held or waited for so long
	older  time.Duration
	Waited bool // somebody waits, or may wait
}

func newFilter(r *http.Request) (filter, error) {
	f := filter{Name: r.URL.Query().Get("q"), Host: r.URL.Query().Get("host"), Older: r.URL.Query().Get("older"), Waited: r.URL.Query().Get("waited") != ""}
	if f.Older == "" {
		return f, nil
	}
	var err error
	if f.older, err = time.ParseDuration(f.Older); err != nil || f.older < 0 {
		return f, fmt.Errorf("%q is no length of time: write 90s, 5m or 2h", f.Older)
	}
	return f, nil
}

// Any tells that there is a filter.
func (f filter) Any() bool { return f.Name != "" || f.Host != "" || f.Older != "" || f.Waited }

// Link is this page with the same filter.
func (f filter) Link(page int) string {
	var all []string
	for _, p := range [][2]string{{"q", f.Name}, {"host", f.Host}, {"older", f.Older}} {
		if p[1] != "" {
			all = append(all, p[0], p[1])
		}
	}
	if f.Waited {
		all = append(all, "waited", "1")
	}
	return at("./", append(all, "page", strconv.Itoa(page))...)
}

// has tells whether the lock is one of those; ofHost has the names of those of the host.
func (f filter) has(k *claim, ofHost map[string]bool) bool {
	return strings.Contains(k.name, f.Name) &&
		(f.Host == "" || ofHost[k.name]) &&
		k.age >= f.older &&
		(!f.Waited || k.waiting || k.listeners > 0)
}

func (h *handler) locks(w http.ResponseWriter, r *http.Request) {
	wanted, err := newFilter(r)
	if err != nil {
		h.fail(w, r, http.StatusBadRequest, err.Error())
		return
	}
	s, err := h.look(r.Context())
	if err != nil {
		h.away(w, r, err)
		return
	}
	p := locksPage{surveyed: newSurveyed(s), Known: len(s.claims), Filter: wanted, LongHold: milliseconds(h.longHold), Locks: []*shownLock{}, Cycles: newCycles(s)}
	var chosen []*claim
	ofHost := s.of(wanted.Host)
	for _, k := range s.ordered {
		if wanted.has(k, ofHost) {
			chosen = append(chosen, k)
		}
	}
	for i := range s.clients {
		p.Hosts = append(p.Hosts, s.clients[i].Host)
	}
	slices.Sort(p.Hosts)
	p.Hosts = slices.Compact(p.Hosts)
	p.Chosen = len(chosen)
	chosen, p.Page, p.Pages = cut(chosen, r.URL.Query().Get("page"))
	names := make([]string, len(chosen))
	for i, k := range chosen {
		names[i] = k.name
	}
	locks, err := s.locks(names)
	if err != nil {
		h.away(w, r, err)
		return
	}
	for _, f := range locks {
		l := h.newLock(s, f)
		switch l.State {
		case free:
			p.Free++
			continue
		case stuck:
			p.Stuck++
		case waited, maybe:
			p.Waited++
		}
		p.Locks = append(p.Locks, l)
	}
	age := func(l *shownLock) milliseconds {
		if l.Holder == nil {
			return l.LongestWait
		}
		return max(l.Holder.For, l.overdue)
	}
	slices.SortStableFunc(p.Locks, func(a, b *shownLock) int {
		return cmp.Or(urgency[a.State]-urgency[b.State], cmp.Compare(age(b), age(a)), cmp.Compare(b.Waiting, a.Waiting))
	})
	h.show(w, r, p.status(r), "locks", p)
}

// cut is the part of all that is on this page, which page that is, and of how many.
func cut[T any](all []T, asked string) (part []T, page, pages int) {
	pages = max(1, (len(all)+maxLocks-1)/maxLocks)
	page, _ = strconv.Atoi(asked)
	page = max(1, min(page, pages))
	from := (page - 1) * maxLocks
	return all[from:min(from+maxLocks, len(all))], page, pages
}

type lockPage struct {
	surveyed
	Lock      *shownLock `json:"lock"`
	Semaphore *shownLock `json:"semaphore,omitempty"` // of the same name
	MayFree   bool       `json:"-"`
}

// Leads tells that there is no lock of this name, but a semaphore.
func (p lockPage) Leads() bool {
	return p.Semaphore != nil && p.Lock.State == free && p.Lock.Token == 0 && p.Lock.seen.Counter == ""
}

func (h *handler) lock(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("name")
	if name == "" {
		h.fail(w, r, http.StatusBadRequest, "Which lock? The parameter name is missing.")
		return
	}
	s, l, ok := h.one(w, r, name)
	if !ok {
		return
	}
	if l.AllSlots {
		h.showSemaphore(w, r, s, l)
		return
	}
	p := lockPage{newSurveyed(s), l, h.ofName(s, name), l.Holder != nil && !l.Part && h.allowed != nil && h.allowed(r)}
	h.show(w, r, p.status(r), "lock", p)
}

// one is the lock of this name; not ok: Redis does not answer, which the response tells.
func (h *handler) one(w http.ResponseWriter, r *http.Request, name string) (s *survey, l *shownLock, ok bool) {
	s, err := h.look(r.Context())
	if err == nil {
		var all []*found
		if all, err = s.locks([]string{name}); err == nil {
			return s, h.newLock(s, all[0]), true
		}
	}
	h.away(w, r, err)
	return nil, nil, false
}

type clientsPage struct {
	surveyed
	Known   int            `json:"known"`
	Clients []*shownClient `json:"clients"`
	Page    int            `json:"page"`
	Pages   int            `json:"pages"`
}

// Previous and Next are the pages beside this one.
func (p clientsPage) Previous() string { return at("clients", "page", strconv.Itoa(p.Page-1)) }
func (p clientsPage) Next() string     { return at("clients", "page", strconv.Itoa(p.Page+1)) }

func (h *handler) clients(w http.ResponseWriter, r *http.Request) {
	s, err := h.look(r.Context())
	if err == nil {
		err = s.presenceErr
	}
	if err != nil {
		h.away(w, r, err)
		return
	}
	p := clientsPage{surveyed: newSurveyed(s), Known: len(s.clients), Clients: []*shownClient{}}
	part, page, pages := cut(s.clients, r.URL.Query().Get("page"))
	p.Page, p.Pages = page, pages
	for i := range part {
		p.Clients = append(p.Clients, newClient(s, &part[i]))
	}
	h.show(w, r, http.StatusOK, "clients", p)
}

type clientPage struct {
	surveyed
	Client    *shownClient `json:"client"`
	Holds     []held       `json:"holds"`
	MoreHolds int          `json:"more_holds"`
	Waits     []wait       `json:"waits"`
	MoreWaits int          `json:"more_waits"`
}

type held struct {
	Lock  string       `json:"lock"`
	For   milliseconds `json:"held_ms"`
	Token int64        `json:"token,omitempty"`

	Lasting string `json:"lasting,omitempty"`
}

type wait struct {
	Lock  string       `json:"lock"`
	For   milliseconds `json:"waited_ms"`
	Calls int          `json:"calls"`

	Lasting   string `json:"lasting,omitempty"`
	Semaphore string `json:"semaphore,omitempty"` // for whose permit
}

func (h *handler) client(w http.ResponseWriter, r *http.Request) {
	s, err := h.look(r.Context())
	if err != nil {
		h.away(w, r, err)
		return
	}
	c := s.byID[r.URL.Query().Get("id")]
	if c == nil {
		h.fail(w, r, http.StatusNotFound, "No client of this id says that it is there. It has ended, was not heard of for half a minute or the longest of its leases, or has no rlock.WithPresence.")
		return
	}
	p := clientPage{surveyed: newSurveyed(s), Client: newClient(s, c), MoreHolds: c.MoreHolds, MoreWaits: c.MoreWaits, Holds: []held{}, Waits: []wait{}}
	for _, hold := range c.Holds {
		p.Holds = append(p.Holds, held{hold.Lock, milliseconds(hold.For + s.since(c)), hold.Token, hold.Lasting})
	}
	for _, waits := range c.Waits {
		p.Waits = append(p.Waits, wait{waits.Lock, milliseconds(waits.For + s.since(c)), waits.Calls, waits.Lasting, waits.Semaphore})
	}
	slices.SortStableFunc(p.Holds, func(a, b held) int { return cmp.Compare(b.For, a.For) })
	slices.SortStableFunc(p.Waits, func(a, b wait) int { return cmp.Compare(b.For, a.For) })
	h.show(w, r, http.StatusOK, "client", p)
}
