package main

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	redisserver "github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/fencelock/fencelock/internal/test/fifo"
	"github.com/fencelock/fencelock/internal/test/memredis"
)

// A server is one Redis in memory, with what is wrong with it.
type server struct {
	number int
	net    *network
	m      *miniredis.Miniredis
	frozen gate
	down   bool          // it refuses connections
	run    int           // how many times it was started, or another took its place
	began  time.Time     // when its run began
	ahead  time.Duration // by how much its wall clock is ahead
	denied string        // a command to which the user has no right
	drifts bool          // its clock runs faster, or slower
	over   bool
	ran    scriptCounter

	published *fifo.Queue[[2]string] // what it has to say to those whom it does not count; nil while it counts all
	refusing  []*refusal             // what it says in place of doing what it is told
	wrote     bool                   // the script that runs has written
}

func newServer(n *network, number int) *server {
	s := &server{number: number, net: n, m: miniredis.NewMiniRedis(), began: time.Now().Add(-24 * time.Hour), ran: scriptCounter{n.tally, make(map[string]string)}}
	s.m.ClockTTL(true)
	if c, err := s.m.Dial(); err == nil { // makes it serve
		_ = c.Close()
	}
	s.m.Server().SetPreHook(s.answers)
	return s
}

// answers answers what the server in memory has no answer to, or another one.
func (s *server) answers(c *redisserver.Peer, cmd string, args ...string) bool {
	if strings.HasPrefix(cmd, "EVAL") { // no script runs
		s.ticks()
	}
	s.net.mu.Lock()
	denied, ahead, run, began, refused := s.denied, s.ahead, s.run, s.began, s.refusedBy(cmd)
	uncounted := s.published
	if cmd != denied && refused == nil {
		s.ran.counts(cmd, args)
	}
	s.net.mu.Unlock()
	if refused != nil {
		c.WriteError(refused.text)
		return true
	}
	if cmd == denied {
		c.WriteError(fmt.Sprintf("NOPERM User fencelock has no permissions to run the '%s' command", strings.ToLower(cmd)))
		return true
	}
	if cmd == "PUBLISH" && uncounted != nil {
		uncounted.Push([2]string{args[0], args[1]})
		c.WriteInt(0)
		return true
	}
	return memredis.Tells(c, cmd, args, fmt.Sprintf("run-%d-%d", s.number, run), began, time.Now().Add(ahead))
}

// ticks sets the clock by which leases end: as that of Redis it has whole milliseconds, and what is left of two leases differs by the same at any time.
func (s *server) ticks() { s.m.SetTime(time.Now().Truncate(time.Millisecond)) }

func (s *server) address() string { return fmt.Sprintf("10.0.%d.%d:6379", s.number, s.run) }

// options are those of a go-redis client whose links go this way: the defaults, but for what virtual time needs.
func (w *way) options() *redis.Options {
	return &redis.Options{
		Addr: fmt.Sprintf("server-%d", w.server.number),
		Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			if err := w.reaches(ctx); err != nil {
				return nil, err
			}
			w.net.mu.Lock()
			s := w.server
			refuses := s.over || s.down || w.gone
			w.net.mu.Unlock()
			if refuses {
				return nil, &net.OpError{Op: "dial", Net: "pipe", Err: syscall.ECONNREFUSED}
			}
			client, server := w.dial()
			s.m.Server().ServeConn(server)
			return client, nil
		},
		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		// go-redis shares the timers of callers that wait for a connection between all pools of the process, and a timer from outside a
		// bubble must not be used in it. In a pool this large nobody waits.
		PoolSize:         4096,
		PipelinePoolSize: -1,
		ConnMaxIdleTime:  -1,
		// A pool of the default size has no more. A call gets past so many that have ended (P8).
		MaxIdleConns: 30,
	}
}

// close ends the server, and all links.
func (s *server) close() {
	s.net.mu.Lock()
	s.over = true
	s.counts()
	s.net.mu.Unlock()
	s.net.each(func(l *link) bool { return l.way.server == s }, (*link).drop)
	s.m.Close()
}

// owner returns the field of who has the lock, or the fields of those who read; "" for nobody.
func (s *server) owner(lock string) string {
	s.ticks()
	fields, _ := s.m.HKeys(lock)
	if len(fields) == 0 {
		return ""
	}
	mode := s.m.HGet(lock, "mode")
	if mode == "" {
		return strings.TrimSuffix(fields[0], "#")
	}
	fields = slices.DeleteFunc(fields, func(f string) bool {
		return f == "mode" || f == "phase" || mode == "read" && !s.m.Exists(ownKey(lock, f))
	})
	return strings.Join(fields, " ")
}

// ownKey is the key that a hold which reads has for itself.
func ownKey(lock, field string) string { return "{" + lock + "}:" + field + ownKeyEnd }

const ownKeyEnd = ":rwlock_timeout:1"

// settle waits until the server has executed all that has arrived.
func (s *server) settle() { time.Sleep(time.Nanosecond) }

// jump sets the server's wall clock, by which leases end.
func (s *server) jump(by time.Duration) {
	s.net.mu.Lock()
	s.ahead += by
	s.net.mu.Unlock()
	if s.ticks(); by > 0 {
		s.m.FastForward(by)
		return
	}
	for _, key := range s.m.Keys() {
		if ttl := s.m.TTL(key); ttl > 0 {
			s.m.SetTTL(key, ttl-by)
		}
	}
}

// newRun is what another process knows: no scripts.
func (s *server) newRun() {
	s.net.mu.Lock()
	s.run++
	s.began = time.Now().Add(s.ahead)
	clear(s.ran.names) // of the scripts
	s.net.mu.Unlock()
	if c, err := s.m.Dial(); err == nil {
		own := redis.NewClient(&redis.Options{Protocol: 2, DisableIdentity: true, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			Dialer: func(context.Context, string, string) (net.Conn, error) { return c, nil }, PoolSize: 1})
		_ = own.ScriptFlush(context.Background()).Err()
		_ = own.Close()
	}
}

// A snapshot is what a server knew at some time.
type snapshot struct {
	at   time.Time
	keys []savedKey
}

type savedKey struct {
	name, kind, text string
	ttl              time.Duration
	hash             []string
	scores           map[string]float64
}

func (s *server) snapshot() snapshot {
	s.ticks()
	snap := snapshot{at: time.Now()}
	for _, name := range s.m.Keys() {
		k := savedKey{name: name, kind: s.m.Type(name), ttl: s.m.TTL(name)}
		switch k.kind {
		case "string":
			k.text, _ = s.m.Get(name)
		case "hash":
			fields, _ := s.m.HKeys(name)
			for _, f := range fields {
				k.hash = append(k.hash, f, s.m.HGet(name, f))
			}
		case "zset":
			k.scores, _ = s.m.SortedSet(name)
		default:
			continue
		}
		snap.keys = append(snap.keys, k)
	}
	return snap
}

// restore makes the server one that knows what this one knew at the time of the snapshot.
func (s *server) restore(snap snapshot) {
	s.m.FlushAll()
	past := time.Since(snap.at).Truncate(time.Millisecond)
	s.ticks()
	for _, k := range snap.keys {
		if k.ttl > 0 && k.ttl <= past {
			continue
		}
		switch k.kind {
		case "string":
			_ = s.m.Set(k.name, k.text)
		case "hash":
			s.m.HSet(k.name, k.hash...)
		case "zset":
			for member, score := range k.scores {
				_, _ = s.m.ZAdd(k.name, score, member)
			}
		}
		if k.ttl > 0 {
			s.m.SetTTL(k.name, k.ttl-past)
		}
	}
	s.newRun()
}
