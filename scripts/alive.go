package scripts

import (
	"context"
	"reflect"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// maxProbes bounds the PINGs that a search sends at once.
	maxProbes = 16
	// probeFor is how long a connection has for the answer to a PING. After it go-redis closes the connection.
	probeFor = time.Second
	// quietFor is how long after a search in vain the next one of the same server may begin.
	quietFor = 5 * time.Second
)

// A prober finds out whether a server answers. It has one search at a time, for all whose commands have no answer.
type prober struct {
	mu     sync.Mutex
	latest *search
	until  time.Time // the latest search stands until then; zero while it is under way
}

// A search looks for a connection over which the server answers.
type search struct {
	began time.Time
	over  chan struct{} // closed when the outcome is known
	alive bool          // the outcome: the server has answered
}

// A server is what a prober needs of a Redis client.
type server interface {
	Process(ctx context.Context, cmd redis.Cmder) error
	PoolStats() *redis.PoolStats
}

// alive tells whether the server that has this key answers over any connection what was sent since then. It is false where ctx ends first. Step is
// the pause before the search sends more PINGs.
func (s *Scripts) alive(ctx context.Context, key string, since time.Time, step time.Duration) bool {
	on, name := server(s.rdb), ""
	one, _ := s.rdb.(*redis.Client)
	if s.cluster != nil {
		var err error
		if one, err = s.cluster.MasterForKey(ctx, key); err != nil {
			return false
		}
		name = one.Options().Addr
	}
	if one != nil {
		on = one.WithTimeout(probeFor)
	}
	p, _ := s.probers.LoadOrStore(name, new(prober))
	for {
		found := p.(*prober).search(on, since, step)
		select {
		case <-found.over:
		case <-ctx.Done():
			return false
		}
		if !found.alive || !found.began.Before(since) {
			return found.alive
		}
	}
}

// search returns the search that is under way, or the latest one where that stands still, or begins one. That the server has answered an earlier search
// says nothing of what was sent since.
func (p *prober) search(on server, since time.Time, step time.Duration) *search {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if l := p.latest; l == nil || !p.until.IsZero() && (!now.Before(p.until) || l.alive && l.began.Before(since)) {
		p.latest, p.until = &search{began: now, over: make(chan struct{})}, time.Time{}
		go p.run(p.latest, on, step)
	}
	return p.latest
}

// run is a search. It sends a PING, after each third of a step twice as many, and at once where all have failed, until one is answered. go-redis hands
// out all idle connections before it dials, so the search is in vain when it has sent one PING more than connections were idle. Where
// some connections have not answered, run then sends a PING over all that are idle: those that are dead are closed.
func (p *prober) run(s *search, on server, step time.Duration) {
	answers := make(chan bool)
	ping := func() {
		answered := pinged(on)
		select {
		case answers <- answered:
		case <-s.over:
		}
	}
	open, failed := 0, 0
	for n, last := 1, false; !s.alive && !last; n = min(2*n, maxProbes) {
		idle := idleConns(on)
		last = n > idle
		for range min(n, idle+1) {
			open++
			go ping()
		}
		more := time.NewTimer(step / 3)
		for next := false; open > 0 && !s.alive && !next; {
			select {
			case s.alive = <-answers:
				open--
				if !s.alive {
					failed++
				}
			case <-more.C:
				next = !last
			}
		}
		more.Stop()
	}
	stands := quietFor
	if s.alive {
		stands = step
	}
	p.mu.Lock()
	p.until = time.Now().Add(stands)
	p.mu.Unlock()
	close(s.over)
	if s.alive && open+failed > 0 {
		time.AfterFunc(step, func() { // the copies of commands take the connection that has answered
			for range idleConns(on) {
				go pinged(on)
			}
		})
	}
}

// pinged sends a PING, and tells whether the server has answered, if only with an error.
func pinged(on server) bool {
	ctx, cancel := context.WithTimeout(context.Background(), probeFor)
	defer cancel()
	err := on.Process(ctx, command{redis.NewCmd(ctx, "ping", "fencelock")})
	return err == nil || answered(err)
}

// idleConns returns how many connections are idle, in the pool and in the one that go-redis has for pipelines.
func idleConns(on server) int {
	pool := on.PoolStats()
	return int(pool.IdleConns) + idleForPipelines(pool)
}

// idleForPipelines returns how many connections are idle in the pool for pipelines, which go-redis has from a later version on than the
// oldest that this module works with.
func idleForPipelines(pool *redis.PoolStats) int {
	if stats := reflect.ValueOf(pool).Elem().FieldByName("PipelineStats"); stats.IsValid() && !stats.IsNil() {
		return int(stats.Elem().FieldByName("IdleConns").Uint())
	}
	return 0
}
