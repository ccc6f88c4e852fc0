package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/quorums"
)

// A quorumServer is what doctor finds of one server of a quorum.
type quorumServer struct {
	*doctor
	shown   string
	version string
	run     string        // "" for one that does not say, or is away
	trip    time.Duration // 0 for one that is away
	counts  bool
	name    string // as in the record of the members,
	record  string // which the server has
}

// examineQuorum looks at each of the servers, by the rules of package quorum, and at all of them together.
func examineQuorum(ctx context.Context, at *connection, what, names []string, longest time.Duration) ([]finding, error) {
	if longest <= 0 || longest > 24*time.Hour {
		return nil, usage("--max-lease %v: use a day or less, as quorum.WithMaxLease", longest)
	}
	if len(what) == 0 {
		what = []string{"quorum"}
	}
	kinds, err := kindsOf(what)
	if err != nil {
		return nil, err
	}
	clients, err := at.openAll()
	if err != nil {
		return nil, err
	}
	defer closeAll(clients)
	addresses, err := at.addresses()
	if err != nil {
		return nil, err
	}
	base := "fencelock_doctor"
	if len(names) > 0 {
		base = names[0]
	}
	all := make([]*quorumServer, len(clients))
	var looks sync.WaitGroup
	for i, rdb := range clients {
		s := &quorumServer{doctor: &doctor{viewer: &viewer{rdb: rdb}, server: rdb, info: map[string]string{}}, shown: at.shownAll()[i]}
		s.name, _ = quorums.Name(rdb)
		all[i] = s
		looks.Go(func() {
			if s.look(ctx, addresses[i], longest) {
				s.examineRights(ctx, at, kinds, base)
				s.counts = s.counts && !slices.ContainsFunc(s.findings, refuses)
			}
		})
	}
	looks.Wait()
	var found []finding
	for _, s := range all {
		for _, f := range s.findings {
			if f.Result != fine || f.Check == "server" {
				f.Server = s.shown
				found = append(found, f)
			}
		}
	}
	return append(found, together(all)...), nil
}

// refuses tells whether a finding is one for which a server refuses a quorum's locks.
func refuses(f finding) bool {
	return f.Result == wrong && (f.Check == "version" || f.Check == "commands" || f.Check == "rights" && strings.HasSuffix(f.Text, ", for "+needQuorum))
}

// look looks at one server, and tells whether rights are to be tried there.
func (s *quorumServer) look(ctx context.Context, address string, longest time.Duration) bool {
	if hint, err := s.ping(ctx, address); err != nil {
		s.note(warning, "server", "away: %v%s", err, hint)
		return false
	}
	for range 5 {
		began := time.Now()
		_ = s.rdb.Ping(ctx)
		if took := time.Since(began); s.trip == 0 || took < s.trip {
			s.trip = took
		}
	}
	if !s.readInfo(ctx) {
		s.note(wrong, "server", "it does not tell its run id and uptime, which are of INFO: it never counts")
		return true
	}
	name, version, _ := engineOf(s.info)
	s.run, s.version = s.info["run_id"], name+" "+version
	switch {
	case s.run == "" || s.info["uptime_in_seconds"] == "":
		s.note(wrong, "server", "%s tells no run_id, or no uptime_in_seconds, in INFO: such an engine cannot be a server of a quorum", s.version)
		return false
	case s.info["cluster_enabled"] == "1":
		s.note(wrong, "server", "a node of a cluster: the servers of a quorum know nothing of each other")
		return false
	case s.info["role"] != "master" || s.info["redis_mode"] == "sentinel" || s.info["server_mode"] == "sentinel":
		s.note(wrong, "server", "it is no master, and keeps no locks: name the master, or another server")
		return false
	}
	s.record = s.server.Get(ctx, quorums.MembersKey).Val()
	s.examineVersion()
	s.examineMemory()
	s.examineClock(ctx)
	up, _ := strconv.ParseInt(s.info["uptime_in_seconds"], 10, 64)
	keeps, proved, text := s.proof(ctx)
	delay := longest + time.Second
	age := time.Duration(up) * time.Second
	s.counts = age >= delay || keeps && proved
	about := fmt.Sprintf("%s, %v away, up %v. %s", s.version, s.trip.Round(10*time.Microsecond), age, text)
	switch {
	case up < 0:
		s.note(warning, "server", "%s. Its clock was set back behind its start: it counts for a client that has heard from it for %v, or after a restart", about, delay)
	case !s.counts:
		s.note(warning, "server", "%s. It started less than the longest lease ago, and may have forgotten holds: it counts in %v", about, delay-age)
	default:
		s.note(fine, "server", "%s", about)
	}
	return true
}

// proof asks what a restart would lose, by the rules of package quorum: whether the server has each command on disk before it answers, and
// whether it proves that this run began with what the run before had.
func (s *quorumServer) proof(ctx context.Context) (keeps, proved bool, text string) {
	fsync, err := s.server.ConfigGet(ctx, "*appendfsync*").Result()
	mark, missing := s.server.Get(ctx, proof).Result()
	if err != nil || missing != nil && missing != redis.Nil {
		return false, false, "What a restart loses is not known: give the user +config|get +get ~" + proof
	}
	var gaps []string
	for _, set := range [][2]string{{"appendonly", "yes"}, {"appendfsync", "always"}, {"no-appendfsync-on-rewrite", "no"}} {
		has := fsync[set[0]]
		if set[0] == "appendonly" {
			has = map[string]string{"1": "yes"}[s.info["aof_enabled"]]
		}
		if has != set[1] {
			gaps = append(gaps, strings.Join(set[:], " "))
		}
	}
	switch keeps, proved = len(gaps) == 0, mark != "" && mark != s.run; {
	case keeps && mark != "":
		return keeps, proved, "A restart loses nothing"
	case keeps:
		return keeps, false, "A restart loses nothing, but that is proved only when a client has left the key " + proof
	case mark != "":
		s.note(warning, "proof", "the key %s is of other settings: DEL it, before a restart could pass for one that loses nothing", proof)
	}
	return false, false, "After a restart it does not count for the longest lease, for want of " + strings.Join(gaps, ", ")
}

// together says what only all servers show: which are one, which differ, which are far, and how many count.
func together(all []*quorumServer) (found []finding) {
	note := func(result, check, format string, args ...any) {
		found = append(found, finding{"", check, result, fmt.Sprintf(format, args...)})
	}
	records := make([]string, len(all))
	for i, s := range all {
		records[i] = s.record
	}
	members := quorums.Newest(records...)
	runs, versions := map[string]string{}, []string{}
	var trips []time.Duration
	count, twice := 0, false
	var not []string
	for _, s := range all {
		if s.run != "" && runs[s.run] != "" {
			twice, s.counts = true, false
			note(wrong, "same server", "%s and %s are one server: clients refuse that with quorum.ErrSameServer. Give each server one URL", runs[s.run], s.shown)
		} else if s.run != "" {
			runs[s.run] = s.shown
		}
		if members.Generation > 0 && !members.Has(s.name) && s.record != members.String() {
			s.counts = false
			note(warning, "members", "%s is no member of the quorum, which is %s: clients do not count it (see fencelock quorum)", s.shown, strings.Join(members.Names, ", "))
		}
		if s.version != "" && !slices.Contains(versions, s.version) {
			versions = append(versions, s.version)
		}
		if s.trip > 0 {
			trips = append(trips, s.trip)
		}
		if s.counts {
			count++
		} else {
			not = append(not, s.shown)
		}
	}
	if len(versions) > 1 {
		slices.Sort(versions)
		note(warning, "versions", "they differ: %s. Upgrade the others, one after the other", strings.Join(versions, ", "))
	}
	size := len(all)
	if members.Generation > 0 {
		size = members.Size
	}
	majority := size/2 + 1
	if slices.Sort(trips); len(trips) >= majority {
		// as package quorum asks further nodes
		near := trips[majority-1]
		for _, s := range all {
			if s.trip > 4*near+5*time.Millisecond {
				note(warning, "distance", "%s is %v away, a majority at most %v: clients ask it last, and with others away each lock takes as long", s.shown, s.trip.Round(10*time.Microsecond), near.Round(10*time.Microsecond))
			}
		}
	}
	text := fmt.Sprintf("%d of %d servers count, and %d are a majority", count, size, majority)
	if len(not) > 0 {
		text += " (not " + strings.Join(not, ", ") + ")"
	}
	switch spare := count - majority; {
	case twice:
		note(wrong, "quorum", "%s, but no client works with one server twice", text)
	case spare < 0:
		note(wrong, "quorum", "%s: nobody gets a lock", text)
	case len(not) > 0:
		note(warning, "quorum", "%s: locks work, and %d more may be away", text, spare)
	default:
		note(fine, "quorum", "%s: locks work, and %d may be away", text, spare)
	}
	return found
}
