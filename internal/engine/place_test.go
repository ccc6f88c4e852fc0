package engine

import "testing"

// P24: a first one that says that it lives right behind its call is not watched, whichever of the two the second acts on first.
func TestP24_AliveBeforeTheCallIsActedOn(t *testing.T) {
	p := new(place)
	ticket, _ := p.turn(func() string { return "b:1" })
	p.placeKnown(ticket, 2, 1)
	p.onMessage("w b:1 a:1")
	p.onMessage("a b:1")
	if n, _ := p.takeNotice(); n.watch != "" {
		t.Errorf("it watches %s, which lives", n.watch)
	}
	p.onMessage("w b:1 a:1")
	if n, _ := p.takeNotice(); n.watch != "a:1" {
		t.Errorf("it watches %q, and a:1 was called anew", n.watch)
	}
}

// P24: what was heard before the first one has said that it lives is no reason to watch it, however late it is acted on; what is
// heard afterwards is.
func TestP24_AliveBeforeAnOldAnswer(t *testing.T) {
	p := new(place)
	ticket, _ := p.turn(func() string { return "b:1" })
	p.placeKnown(ticket, 2, 1)
	before := p.alive()
	p.onMessage("a b:1")
	p.watchUnlessAlive("a:1", "", before)
	if p.calledTicket != "" {
		t.Error("it watches a first one that lives")
	}
	p.watchUnlessAlive("a:1", "", p.alive())
	if p.calledTicket != "a:1" {
		t.Error("it does not watch a first one that was called anew")
	}
}
