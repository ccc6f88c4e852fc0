package quorum

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/scripts"
)

const (
	// maxSilent is how many operations without an answer in time are left with a node before it is asked less often: what
	// it does not answer has to be released again and again.
	maxSilent = 4
	// probeEvery is how often it is asked then.
	probeEvery = 200 * time.Millisecond
	// learnEvery bounds how often a node is asked what it keeps, where it does not say.
	learnEvery = time.Second
)

// A node is one of the servers.
type node struct {
	index   int
	name    string
	rdb     redis.UniversalClient
	scripts *scripts.Scripts
	delay   time.Duration // so long after its start it counts again
	log     *slog.Logger

	mu       sync.Mutex
	silent   int           // operations that were not answered in time, nor since
	probed   time.Time     // when one more was sent
	trip     time.Duration // from an operation to its answer, on the average
	trouble  error         // what it said last in place of an answer; nil since it has answered
	fresh    bool          // it has started too lately to count, by what it said last
	run      string        // its run id, when it said it last
	first    time.Time     // when it said that for the first time,
	heard    time.Time     // and for the last time
	before   time.Time     // when another run was heard of for the last time; zero if none was
	warned   string        // the run that the log was told of
	lossless string        // the run that began with all that the one before had
	learned  string        // the run, and whether it was young, that it was asked about
	asked    time.Time     // and when
}

// send sends the ask; false if it is not worth it: the node does not answer.
func (n *node) send(a *ask) bool {
	n.mu.Lock()
	if n.silent >= maxSilent {
		now := time.Now()
		if now.Sub(n.probed) < probeEvery {
			n.mu.Unlock()
			return false
		}
		n.probed = now
	}
	n.mu.Unlock()
	n.scripts.Send(&a.op, a)
	return true
}

// near tells how long an answer takes on the average, and whether the node answers and counts, as far as is known.
func (n *node) near() (trip time.Duration, there bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.trip, n.silent < maxSilent && n.trouble == nil && !n.fresh
}

// missed notes that the answer to an operation did not come in time; late, that it came after all.
func (n *node) missed() {
	n.mu.Lock()
	n.silent++
	n.mu.Unlock()
}

func (n *node) late() {
	n.mu.Lock()
	n.silent--
	n.mu.Unlock()
}

// said notes the outcome of an operation.
func (n *node) said(r *scripts.Report, err error, took time.Duration) {
	if err != nil && !ails(err) {
		return
	}
	n.mu.Lock()
	before := n.trouble
	n.trouble = err
	n.trip += (took - n.trip) / 8
	if r != nil && r.Run != "" {
		now := time.Now()
		if r.Run != n.run {
			n.run, n.first, n.before = r.Run, now, n.heard
		}
		n.heard = now
		n.fresh = !n.ripe(r)
	}
	n.mu.Unlock()
	switch {
	case err != nil && before == nil:
		go n.log.Warn("quorum: a node fails", "node", n.name, "error", err)
	case err == nil && before != nil:
		go n.log.Info("quorum: a node answers again", "node", n.name)
	}
}

// ails tells that an error is one of the node, and not of one operation on it.
func ails(err error) bool {
	return scripts.Passing(err) || redis.HasErrorPrefix(err, "NOAUTH") || redis.HasErrorPrefix(err, "WRONGPASS") || scripts.Unanswered(err)
}

// lastTrouble is what the node said last, if that was an error.
func (n *node) lastTrouble() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.trouble
}

func (n *node) lastRun() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.run
}

// counts tells whether the node's vote counts: it cannot have forgotten a hold that may be trusted still. It has been up
// for longer than any lease, or it says that it lost nothing when it started.
func (n *node) counts(r *scripts.Report) bool {
	if r.Run == "" {
		return false
	}
	n.mu.Lock()
	young, ripe := n.young(r), n.ripe(r)
	what := r.Run
	if young {
		what += " young"
	}
	learn := n.learned != what && time.Since(n.asked) > learnEvery
	if learn {
		n.asked = time.Now()
	}
	warn := !ripe && n.warned != r.Run
	if warn {
		n.warned = r.Run
	}
	n.mu.Unlock()
	if learn {
		go n.learn(r.Run, young, what)
	}
	if warn {
		go n.log.Warn("quorum: a node has started and may have forgotten holds, it does not count yet", "node", n.name, "up", r.Uptime, "counts after", n.delay)
	}
	return ripe
}

// ripe is counts for who knows the node's run. With n.mu held.
func (n *node) ripe(r *scripts.Report) bool { return !n.young(r) || n.lossless == r.Run }

// young tells whether the node may have started less than the delay ago. Its uptime goes by its wall clock, which may have
// been set since; this client knows better where it has heard of this run for longer than that, or of the run before for
// the last time less than that ago. With n.mu held.
func (n *node) young(r *scripts.Report) bool {
	if n.run == r.Run {
		switch {
		case time.Since(n.first) >= n.delay:
			return false
		case !n.before.IsZero() && time.Since(n.before) < n.delay:
			return true
		}
	}
	return r.Uptime < n.delay
}

// tooYoung is why a node does not count that has told its run and uptime.
func (n *node) tooYoung(r *scripts.Report) error {
	switch {
	case r.Uptime < 0:
		return fmt.Errorf("%w, as far as it can tell: its clock was set back behind its start (up for %v); it counts when this client has heard from it for %v, or after a restart",
			ErrRestarted, r.Uptime, n.delay)
	case r.Uptime >= n.delay:
		return fmt.Errorf("%w (up for %v by its clock, but this client has heard from the run before more recently)", ErrRestarted, r.Uptime)
	}
	return fmt.Errorf("%w (up for %v)", ErrRestarted, r.Uptime)
}

// marker is the key by which a server proves that it kept its data through a restart: the id of the run that wrote it. It
// is written only where every command is on disk before it is answered.
const marker = "fencelock:quorum"

// learn asks a node that runs long whether it keeps everything, and leaves the marker there; and one that has just
// started, whether it finds the marker of a run before.
func (n *node) learn(run string, young bool, what string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	pipe := n.rdb.Pipeline()
	server, persistence := pipe.Info(ctx, "server"), pipe.Info(ctx, "persistence")
	fsync, mark := pipe.ConfigGet(ctx, "*appendfsync*"), pipe.Get(ctx, marker)
	_, _ = pipe.Exec(ctx) // each command has its own outcome
	if !strings.Contains(server.Val(), "run_id:"+run) || scripts.Passing(mark.Err()) {
		return // it is asked again
	}
	keeps := strings.Contains(persistence.Val(), "aof_enabled:1") && fsync.Val()["appendfsync"] == "always" &&
		fsync.Val()["no-appendfsync-on-rewrite"] == "no"
	if there := mark.Val() != ""; !young && fsync.Err() == nil && keeps != there {
		if done, err := n.scripts.Mark(ctx, marker, run, keeps); !done && (err == nil || scripts.Passing(err)) {
			return
		}
	}
	n.mu.Lock()
	if young && keeps && mark.Val() != "" && mark.Val() != run {
		n.lossless = run
	}
	n.learned = what
	n.mu.Unlock()
}
