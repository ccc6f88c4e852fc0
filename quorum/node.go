package quorum

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/scripts"
)

const (
	// maxSilent is how many operations may be with a node without an answer in time; then the node is asked less often, because
	// each vote without an answer has to be released again and again.
	maxSilent = 4
	// probeEvery is how often a node with maxSilent such operations is sent one more.
	probeEvery = 200 * time.Millisecond
	// probeAfter is how long nothing is asked of a node, while locks are taken, before it is asked how it is.
	probeAfter = time.Second
	// awayAfter is for how long a node has answered nothing before Close does not wait for it.
	awayAfter = time.Second
	// learnEvery is the least time between two questions to a node whether it keeps its data through a restart.
	learnEvery = time.Second
)

// A node is one of the servers of the quorum.
type node struct {
	index   int
	name    string
	rdb     redis.UniversalClient
	scripts *scripts.Scripts
	members *members
	delay   time.Duration // this long after its start the node counts again
	born    time.Time     // store.born
	log     *slog.Logger

	mu sync.Mutex
	health
	runs
}

// health is how a node answers. The node's mu guards it.
type health struct {
	silent  int           // operations that were not answered in time, and have no answer yet
	probed  time.Time     // when an operation was sent although maxSilent were without an answer
	sent    time.Time     // when an operation was sent last
	trip    time.Duration // the average time from an operation to its answer
	clock   nodeClock     // by the answers that told it
	lost    time.Time     // since when nothing was answered that was asked; zero where the latest was answered
	trouble error         // why the node fails, by the latest outcome that says something about the node; nil where that was an answer
}

// runs are what is known of a node's present run, and the one before. The node's mu guards it.
type runs struct {
	tooNew   bool      // the node has started too lately to count, by its latest answer
	run      string    // its run id, by its latest answer
	first    time.Time // when the node told this run id for the first time
	heard    time.Time // when the node told a run id for the last time
	before   time.Time // when the run before this one was heard of for the last time; zero if none was
	began    time.Time // this run began no earlier, by what was heard of the run before, or of this one when it was young; zero if by nothing
	stepped  bool      // the uptime told since says that it began earlier: the node's clock was set, and its uptime tells nothing
	warned   string    // the run id of which the log says that it does not count yet
	lossless string    // the run id of a run that began with all data of the run before
	hurries  bool      // learn begins at once in any case
	learned  string    // the state of the node that learn has finished with: the run id, and " young" where it was young
	asked    time.Time // when learn was started last

	record    string    // the record of the members that the node told last; "" for none
	recorded  time.Time // when it was to get another one last
	unwritten bool      // it refuses records
}

// send sends the ask. It returns false, and sends nothing, where the node has left maxSilent operations without an answer and was
// probed less than probeEvery ago.
func (n *node) send(a *ask) bool {
	if !n.mayAsk() {
		return false
	}
	n.scripts.Send(&a.op, a)
	return true
}

// mayAsk tells whether the node is to be sent an operation now, which it is taken to be then.
func (n *node) mayAsk() bool {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.silent >= maxSilent {
		if now.Sub(n.probed) < probeEvery {
			return false
		}
		n.probed = now
	}
	n.sent = now
	return true
}

// near returns how long the node's answers take on the average, and whether the node answers and counts, as far as is known.
func (n *node) near() (trip time.Duration, there bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.trip, n.silent < maxSilent && n.trouble == nil && !n.tooNew
}

// noteLost notes that a question has no answer. With n.mu held.
func (n *node) noteLost() {
	if n.lost.IsZero() {
		n.lost = time.Now()
	}
}

// isAway tells whether the node has answered nothing of what it was asked for so long that Close does not wait for it.
func (n *node) isAway() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.lost.IsZero() && time.Since(n.lost) >= awayAfter
}

// stranger tells whether the node has neither answered nor failed so far.
func (n *node) stranger() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.run == "" && n.trouble == nil && n.silent < maxSilent
}

// toldLately tells whether the node has told its run a short time ago.
func (n *node) toldLately() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return !n.heard.IsZero() && time.Since(n.heard) < probeAfter
}

// probeDue tells whether nothing was asked of the node for a while.
func (n *node) probeDue() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Since(n.sent) >= probeAfter
}

// missed notes that an operation was not answered in time.
func (n *node) missed() {
	n.mu.Lock()
	n.silent++
	n.noteLost()
	n.mu.Unlock()
}

// late notes that an operation which missed has noted has its outcome after all.
func (n *node) late() {
	n.mu.Lock()
	n.silent--
	n.mu.Unlock()
}

// noteOutcome notes the outcome of an operation, and how long that took. An error of the operation alone says nothing about the node. late: the
// node has stood still, which says nothing of how far away it is.
func (n *node) noteOutcome(r *scripts.Report, err error, took time.Duration, late bool) {
	if err != nil && !nodeFailing(err) {
		return
	}
	due := false
	n.mu.Lock()
	before := n.trouble
	n.trouble = err
	if err == nil {
		n.lost = time.Time{}
	} else {
		n.noteLost()
	}
	switch {
	case err != nil:
	case n.run == "":
		n.trip = took
	case !late:
		n.trip += (took - n.trip) / 8
	}
	if r != nil && r.Run != "" {
		now := time.Now()
		if !late {
			n.clock.heard(r.Time, took, now, n.born)
		}
		n.noteRun(r, took, now)
		due = n.noteRecord(r.Members, now)
		n.tooNew = !n.countsLocked(r)
	}
	n.mu.Unlock()
	if due {
		n.members.write(n, r.Members)
	}
	switch {
	case err != nil && before == nil:
		n.log.Warn("quorum: a node fails", "node", n.name, "error", err)
	case err == nil && before != nil:
		n.log.Info("quorum: a node answers again", "node", n.name)
	}
}

// noteRun notes what an answer, which took this long, tells of the node's run. No run begins before the one before it was heard of for the
// last time, and none ages faster than time passes. Where the uptime says so the node's clock has stepped, or this client's has stood still, as that
// of a machine that is suspended does, or another server has the node's address: the first and the last must not count, and the second
// costs the delay. Uptimes are told in whole seconds, and clocks run at different speeds, by a percent. With n.mu held.
func (n *node) noteRun(r *scripts.Report, took time.Duration, now time.Time) {
	if r.Run != n.run {
		n.run, n.first, n.before, n.began, n.stepped = r.Run, now, n.heard, n.heard, false
	}
	n.heard = now
	if !n.began.IsZero() {
		up := now.Sub(n.began)
		n.stepped = n.stepped || r.Uptime > up+time.Second+up/100
	}
	if began := now.Add(-took - r.Uptime); r.Uptime < n.delay && began.After(n.began) {
		n.began = began
	}
}

// nodeFailing tells whether an error says that the node fails, and not only one operation on it.
func nodeFailing(err error) bool {
	return scripts.Passing(err) || redis.HasErrorPrefix(err, "NOAUTH") || redis.HasErrorPrefix(err, "WRONGPASS") || scripts.Unanswered(err)
}

// lastTrouble returns why the node fails, as noteOutcome has noted it; nil where the node answers.
func (n *node) lastTrouble() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.trouble
}

// lastRun returns the run id that the node told last; "" for none.
func (n *node) lastRun() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.run
}

// counts tells whether the node's answer counts: the node is a member, and cannot have forgotten a hold that may be trusted still, because it has been
// up for longer than any lease, or has proved that it lost nothing when it started. A node that does not tell its run id and uptime
// never counts. Where learn has not asked the node in its present state, counts starts that: at once where the node may count sooner by it, and
// otherwise, as hundreds of clients may begin at the same moment, most clients do so some seconds later.
func (n *node) counts(r *scripts.Report) bool {
	if r.Run == "" {
		return false
	}
	n.mu.Lock()
	young, counted := n.young(r), n.countsLocked(r)
	what := r.Run
	if young {
		what += " young"
	}
	learn := n.learned != what && time.Since(n.asked) > learnEvery
	var after time.Duration
	if learn && !young && !n.hurries {
		after = between(learnEvery, 5*learnEvery)
	}
	if learn {
		n.asked = time.Now().Add(after)
	}
	warn := young && !counted && n.warned != r.Run
	if warn {
		n.warned = r.Run
	}
	n.mu.Unlock()
	if learn {
		time.AfterFunc(after, func() { n.learn(r.Run, young, what) })
	}
	if warn {
		n.log.Warn("quorum: a node has started and may have forgotten holds, it does not count yet", "node", n.name, "up", r.Uptime, "counts after", n.delay)
	}
	return counted
}

// countsLocked is counts without its question to the node and its line in the log. With n.mu held.
func (n *node) countsLocked(r *scripts.Report) bool {
	return (!n.young(r) || n.lossless == r.Run) && n.isMember()
}

// young tells whether the node may have started less than the delay ago. The node's uptime goes by its wall clock, which may have
// been set since. What this client has seen itself goes before the uptime: it has heard of this run for longer than the delay, or of
// the run before less than the delay ago, or the uptime is false. With n.mu held.
func (n *node) young(r *scripts.Report) bool {
	if n.run == r.Run {
		switch {
		case time.Since(n.first) >= n.delay:
			return false
		case n.stepped, !n.before.IsZero() && time.Since(n.before) < n.delay:
			return true
		}
	}
	return r.Uptime < n.delay
}

// tooYoung returns the error of a node that has told its run id and uptime, and does not count.
func (n *node) tooYoung(r *scripts.Report) error {
	switch {
	case r.Uptime < 0:
		return fmt.Errorf("%w, as far as it can tell: its clock was set back behind its start (up for %v); it counts when this client has heard from it for %v, or after a restart",
			ErrRestarted, r.Uptime, n.delay)
	case r.Uptime >= n.delay:
		return fmt.Errorf("%w (up for %v by its clock, but not by what this client has heard from it)", ErrRestarted, r.Uptime)
	}
	return fmt.Errorf("%w (up for %v)", ErrRestarted, r.Uptime)
}

// marker is the key by which a server proves that it kept its data through a restart. The client writes it only where the server has every command on disk before it answers.
const marker = quorums.Marker

// learn finds out whether the node keeps its data through a restart. On a node that is old enough it leaves the marker if the node
// has every command on disk before it answers, and takes the marker away if not; it leaves the marker alone where the node does not
// tell its configuration. A young node with that configuration that has the marker of a run before has lost nothing: it counts at
// once. run is the run id that was told with an answer, and what goes into n.learned when learn is done; where the node does not
// answer, or is in another run, learn is started again later.
func (n *node) learn(run string, young bool, what string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	pipe := n.rdb.Pipeline()
	server, persistence := pipe.Info(ctx, "server"), pipe.Info(ctx, "persistence")
	fsync, mark := pipe.ConfigGet(ctx, "*appendfsync*"), pipe.Get(ctx, marker)
	_, _ = pipe.Exec(ctx) // each command of the pipeline has its own error
	if !strings.Contains(server.Val(), "run_id:"+run) || scripts.Passing(mark.Err()) {
		return // counts starts learn again
	}
	keeps := quorums.Keeps(persistence.Val(), fsync.Val())
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
