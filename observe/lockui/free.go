package lockui

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/fencelock/fencelock/internal/plain"
)

type freePage struct {
	Lock    *shownLock `json:"lock"` // as it is now
	Freed   bool       `json:"freed"`
	Verdict string     `json:"verdict,omitempty"` // of a quorum: on which servers
	Message string     `json:"message,omitempty"` // why nothing was freed

	Again string `json:"-"` // where the form leads
	Over  bool   `json:"-"` // the hold that was shown
}

// MayTry tells that there is a form.
func (p freePage) MayTry() bool { return !p.Freed && !p.Over }

// maxForm bounds the body of the form: a name, typed again.
const maxForm = 64 << 10

// free shows the form, and carries it out. The hold that was shown is in the query; the name, typed again, in the body.
func (h *handler) free(w http.ResponseWriter, r *http.Request) {
	switch {
	case h.allowed == nil:
		h.fail(w, r, http.StatusForbidden, "This page can only be read: it was made without lockui.WithForceUnlock.")
		return
	case !h.allowed(r):
		h.fail(w, r, http.StatusForbidden, "You may not force a lock open.")
		return
	case r.Method != http.MethodGet && r.Method != http.MethodHead && r.Method != http.MethodPost:
		w.Header().Set("Allow", "GET, HEAD, POST")
		h.fail(w, r, http.StatusMethodNotAllowed, "A lock is forced open by POST.")
		return
	}
	shown := r.URL.Query()
	name, field := shown.Get("name"), shown.Get("holder")
	token, err := strconv.ParseInt(shown.Get("token"), 10, 64)
	if name == "" || field == "" || err != nil {
		h.fail(w, r, http.StatusBadRequest, "Which hold? The parameters name, holder and token say what was shown.")
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if r.Method == http.MethodPost && r.ParseForm() != nil {
		h.fail(w, r, http.StatusBadRequest, "The form cannot be read. Nothing was freed.")
		return
	}
	s, l, ok := h.oneNow(w, r, name)
	if !ok {
		return
	}
	p := freePage{Lock: l, Again: "free?" + url.Values{"name": {name}, "holder": {field}, "token": {strconv.FormatInt(token, 10)}}.Encode()}
	if l.Part {
		p.Over, p.Message = true, l.PartText()+" Nothing was freed."
		h.show(w, r, http.StatusConflict, "free", p)
		return
	}
	if !l.has(field) || l.Token != token {
		p.Over, p.Message = true, "The hold that you were shown is over: "+now(l)+" Nothing was freed."
		h.show(w, r, http.StatusConflict, "free", p)
		return
	}
	if r.Method != http.MethodPost {
		h.show(w, r, http.StatusOK, "free", p)
		return
	}
	if typed := r.PostForm.Get("typed"); typed != name && typed != plain.Name(name) {
		p.Message = "What you typed is not the name of this lock. Nothing was freed."
		h.show(w, r, http.StatusBadRequest, "free", p)
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), patience)
	defer cancel()
	all, err := s.in.FreeEach(ctx, l.seen)
	p.Freed = err == nil && all.Over() && all.Count() > 0
	if len(l.Servers) > 0 {
		p.Verdict = all.String()
	}
	user, _, _ := r.BasicAuth()
	h.log.Warn("lockui: forced open", "lock", name, "holder", field, "token", token, "freed", p.Freed, "servers", p.Verdict, "error", err, "from", r.RemoteAddr, "user", user)
	switch {
	case err != nil:
		h.fail(w, r, http.StatusServiceUnavailable, "Redis did not say whether the lock was freed: look again. "+plain.Error(err, "")+".")
	case !all.Over():
		p.Over, p.Message = true, "It is not freed: "+plain.Line(p.Verdict)+". Look again."
		h.show(w, r, http.StatusServiceUnavailable, "free", p)
	case !p.Freed:
		p.Over, p.Message = true, "The hold that you were shown is over, or Redis did not say. Nothing is known to be freed: look again."
		h.show(w, r, http.StatusConflict, "free", p)
	default:
		h.show(w, r, http.StatusOK, "free", p)
	}
}

// has tells whether the hold of this field has the lock: of a lock that is read, any of those that read.
func (l *shownLock) has(field string) bool {
	if slices.ContainsFunc(l.Readers, func(r shownReader) bool { return r.Field == field }) {
		return true
	}
	return l.Holder != nil && l.Holder.Field == field
}

// oneNow is one, but asks Redis now.
func (h *handler) oneNow(w http.ResponseWriter, r *http.Request, name string) (s *survey, l *shownLock, ok bool) {
	shown, err := h.look(r.Context())
	if err != nil {
		h.away(w, r, err)
		return nil, nil, false
	}
	s = &survey{in: shown.in, at: shown.at, servers: shown.servers, clients: shown.clients, ago: shown.ago, byID: shown.byID, channelsErr: shown.channelsErr, looked: map[string]*found{}}
	all, err := s.locks([]string{name})
	if err != nil {
		h.away(w, r, err)
		return nil, nil, false
	}
	return s, h.newLock(s, all[0]), true
}

// now says who has the lock.
func now(l *shownLock) string {
	switch {
	case l.Other != "":
		return "at this key is " + l.Other + "."
	case l.Unknown != "":
		return l.Unknown + "."
	case l.Holder == nil:
		return "nobody has the lock now."
	case l.Holder.By != nil:
		return "now " + plain.Name(l.Holder.By.Name) + " on " + plain.Name(l.Holder.By.Host) + " has the lock, or the same holder has acquired it again."
	default:
		return "now another client has the lock, or the same holder has acquired it again."
	}
}
