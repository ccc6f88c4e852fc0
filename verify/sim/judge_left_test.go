package main

import "testing"

// keepsLeft is what the caller's client has left.
func (c caller) keepsLeft(at float64, what string) event {
	return event{At: seconds(at), Kind: left, Client: c.client, Text: what, Count: 1}
}

func TestJudgeClientsHaveNothingLeft(t *testing.T) {
	settled := broken(1, 2, 3) // at 5 s
	leases := func(p *plan) {
		p.Clients[1].Callers = []callerPlan{{Calls: []call{{Lease: seconds(1)}, {Lease: seconds(48)}, {}}}}
	}
	deadLink := history(with(settled[0], func(e *event) { e.Text = "dead: links" }), settled[1])
	try(t, []twin{
		{"a lock", nil, nil, more(a.keepsLeft(9, knownLocks)), nothingLeft},
		{"a release", nil, nil, more(a.keepsLeft(9, owedReleases)), nothingLeft},
		{"a release within a lease of a fault", nil, history(settled, a.keepsLeft(44.999, owedReleases)), later(left, 0), nothingLeft},
		{"a release within the longest lease", leases, history(settled, a.keepsLeft(68.999, owedReleases)), later(left, 0), nothingLeft},
		{"nothing else after a fault", nil, history(settled, a.keepsLeft(9, owedReleases)), says(left, openHolds), nothingLeft},
		{"a channel of a link that has died", nil, history(deadLink, leaves(9, "", leftChannel+"x")), says(begins, "cut: links"), nothingLeft},
		{"a key", nil, history(deadLink, leaves(9, "", leftChannel+"x")), says(left, "the key x"), nothingLeft},
	})
}
