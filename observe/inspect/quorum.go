package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/scripts"
)

// NewQuorum returns an Inspector on the servers of a quorum (package quorum), which stay the caller's. It sends nothing. Give all of them, with the addresses that
// the locks' clients have: the home of a lock, where clients wait, follows from these.
//
// All servers are asked at the same time. One that has not answered within a second is not waited for; Servers says which. Lock.Servers has what each
// server says, and a lock is held by whom a majority names: what a minority has is left of an attempt, or of a hold that is over. Where too few servers answer and
// count, Lock.Unknown says so. A method returns an error where no server answers.
func NewQuorum(servers []redis.UniversalClient, opts ...Option) (*Inspector, error) {
	if len(servers) == 0 {
		return nil, errors.New("inspect: NewQuorum: no servers: pass a client for each")
	}
	in, err := New(servers[0], opts...)
	if err != nil {
		return nil, err
	}
	in.name = ""
	for i, rdb := range servers {
		name, err := quorums.Name(rdb)
		if err != nil {
			return nil, fmt.Errorf("inspect: NewQuorum: server %d: %w", i, err)
		}
		for j := range i {
			if reflect.TypeOf(rdb).Comparable() && servers[j] == rdb {
				return nil, fmt.Errorf("inspect: NewQuorum: servers %d and %d are the same client", j, i)
			}
		}
		in.parts = append(in.parts, &part{name: name, in: &Inspector{rdb: rdb, sharding: pubsub.Off}})
	}
	return in, nil
}

// WithMaxLease says what the longest lease of a quorum's clients is, as quorum.WithMaxLease of theirs, which nobody else can know. By it Servers judges for how
// long a server that has started does not count. The default, also for 0 and less, is 30 s, the lease of rlock.WithLease.
func WithMaxLease(d time.Duration) Option {
	return func(in *Inspector) {
		if d > 0 {
			in.longest = d
		}
	}
}

// partTimeout is how long an inspection waits for one of several servers, and freeTimeout a release.
const partTimeout, freeTimeout = time.Second, 2 * time.Second

// part is one of several servers.
type part struct {
	name string
	in   *Inspector // of this server alone

	mu      sync.Mutex
	late    int   // questions that were not waited for any longer, and have no answer yet
	trouble error // of the latest answer, where that was an error
}

// silent is the error of a server that has not answered in time.
func (p *part) silent() error {
	if p.trouble != nil {
		return fmt.Errorf("%w: %w", plain.ErrSilent, p.trouble)
	}
	return plain.ErrSilent
}

// away returns an error where an earlier question has no answer yet.
func (p *part) away() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.late == 0 {
		return nil
	}
	return p.silent()
}

// answer is what one of several servers has answered.
type answer[T any] struct {
	value T
	err   error
}

// askPart asks one of several servers, and waits so long. A read from Redis cannot be interrupted: the question goes on where it is not waited for.
func askPart[T any](ctx context.Context, p *part, within time.Duration, ask func(ctx context.Context, one *Inspector) (T, error)) answer[T] {
	var late, done bool // guarded by p.mu
	got := make(chan answer[T], 1)
	go func() {
		value, err := ask(context.WithoutCancel(ctx), p.in)
		p.mu.Lock()
		if done = true; late {
			p.late--
		}
		var network *net.OpError // without what was asked
		if p.trouble = nil; errors.As(err, &network) {
			p.trouble = network
		} else if !isReply(err) {
			p.trouble = err
		}
		p.mu.Unlock()
		got <- answer[T]{value, err}
	}()
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case a := <-got:
		return a
	case <-timer.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if done {
		return <-got
	}
	late = true
	p.late++
	return answer[T]{err: p.silent()}
}

// each asks all servers at the same time. A server that has not answered an earlier question yet is asked nothing.
func each[T any](ctx context.Context, in *Inspector, ask func(ctx context.Context, one *Inspector) (T, error)) []answer[T] {
	all := make([]answer[T], len(in.parts))
	var wait sync.WaitGroup
	for i, p := range in.parts {
		wait.Go(func() {
			if all[i].err = p.away(); all[i].err == nil {
				all[i] = askPart(ctx, p, partTimeout, ask)
			}
		})
	}
	wait.Wait()
	return all
}

// noneOf is an error where none of the servers has answered, otherwise nil.
func noneOf[T any](in *Inspector, all []answer[T]) error {
	why := make([]error, len(all))
	for i, a := range all {
		if a.err == nil {
			return nil
		}
		why[i] = fmt.Errorf("%s: %w", in.parts[i].name, &plain.At{Where: in.parts[i].name, Err: a.err})
	}
	return fmt.Errorf("none of %d servers answers: %w", len(all), errors.Join(why...))
}

// newer returns that of the two which was heard of later.
func newer(a, b *Client) *Client {
	if a == nil || b != nil && b.Silent < a.Silent {
		return b
	}
	return a
}

// clientsOfAll is what the clients say on the servers: each as it was heard of last.
func (in *Inspector) clientsOfAll(ctx context.Context) ([]Client, error) {
	answers := each(ctx, in, func(ctx context.Context, one *Inspector) ([]Client, error) { return one.Clients(ctx) })
	known := clientsByID{}
	for _, a := range answers {
		for i := range a.value {
			c := &a.value[i]
			known[c.ID] = newer(known[c.ID], c)
		}
	}
	all := make([]Client, 0, len(known))
	for _, c := range known {
		all = append(all, *c)
	}
	slices.SortFunc(all, byName)
	return all, noneOf(in, answers)
}

// contendedOnAll are the names that any of the servers knows.
func (in *Inspector) contendedOnAll(ctx context.Context) ([]string, error) {
	answers := each(ctx, in, func(ctx context.Context, one *Inspector) ([]string, error) { return one.askContended(ctx) })
	var names []string
	for _, a := range answers {
		names = append(names, a.value...)
	}
	slices.Sort(names)
	return slices.Compact(names), noneOf(in, answers)
}

// listenersOfAll are, for each lock, those on the server that has most of them: a client listens on several.
func (in *Inspector) listenersOfAll(ctx context.Context, names []string) (map[string]int, error) {
	answers := each(ctx, in, func(ctx context.Context, one *Inspector) (map[string]int, error) { return one.askListeners(ctx, names) })
	found := make(map[string]int, len(names))
	for _, a := range answers {
		for name, n := range a.value {
			found[name] = max(found[name], n)
		}
	}
	return found, noneOf(in, answers)
}

// askAll is ask of several servers.
func (in *Inspector) askAll(ctx context.Context, names []string, known clientsByID, batch int) ([]Lock, error) {
	all := make([]Lock, 0, len(names))
	if len(names) == 0 {
		return all, nil
	}
	servers, err := in.Servers(ctx)
	if err != nil {
		return nil, err
	}
	type seen struct {
		locks []Lock
		known clientsByID
	}
	for part := range slices.Chunk(names, batch) {
		before := maps.Clone(known) // a question may go on when known has changed
		answers := each(ctx, in, func(ctx context.Context, one *Inspector) (s seen, err error) {
			s.known = maps.Clone(before)
			s.locks, err = one.ask(ctx, part, s.known, batch)
			return s, err
		})
		if err := noneOf(in, answers); err != nil {
			return nil, err
		}
		for i, name := range part {
			v := view{name: name, home: in.homeOf(name)}
			for j, a := range answers {
				said := ServerPart{Server: in.parts[j].name, Err: a.err}
				if a.err == nil {
					said.Lock = a.value.locks[i]
				}
				if servers[j].Same != "" {
					said = ServerPart{Server: said.Server, Err: errors.New("it is the same server as " + servers[j].Same)}
				}
				v.parts, v.counts = append(v.parts, said), append(v.counts, servers[j].Counts)
			}
			all = append(all, v.lock())
		}
		for _, a := range answers {
			for id, c := range a.value.known {
				known[id] = newer(known[id], c)
			}
		}
	}
	return all, nil
}

// homeOf is the index of the server that is the lock's home.
func (in *Inspector) homeOf(name string) int {
	order := make([]int, len(in.parts))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(in.parts[a].name, in.parts[b].name) })
	return order[quorums.Start(scripts.KeysOf(name).Channel(), len(order))]
}

// scanAll is Scan of several servers. A server that does not answer is left out; the rest has every hold that a majority has, as long as that is one.
func (in *Inspector) scanAll(ctx context.Context, pattern string, pace Pace) iter.Seq2[Lock, error] {
	return func(yield func(Lock, error) bool) {
		seen := map[string]bool{}
		known := clientsByID{}
		var failed []error
		for _, p := range in.parts {
			for cursor := uint64(0); ; {
				found := answer[scanned]{err: p.away()}
				if found.err == nil {
					found = askPart(ctx, p, partTimeout, func(ctx context.Context, one *Inspector) (scanned, error) {
						return one.step(ctx, one.rdb, cursor, pattern, pace, clientsByID{})
					})
				}
				var fresh []string
				for _, l := range found.value.locks {
					if !seen[l.Name] {
						seen[l.Name] = true
						fresh = append(fresh, l.Name)
					}
				}
				locks, err := in.look(ctx, "Scan", fresh, known)
				if err != nil {
					yield(Lock{}, err)
					return
				}
				for _, l := range locks {
					if !yield(l, nil) {
						return
					}
				}
				if found.err != nil {
					failed = append(failed, fmt.Errorf("%s: %w", p.name, &plain.At{Where: p.name, Err: found.err}))
					break
				}
				if cursor = found.value.next; cursor == 0 {
					break
				}
				if !sleep(ctx, pace.Pause) {
					yield(Lock{}, fmt.Errorf("inspect: Scan: %w", ctx.Err()))
					return
				}
			}
		}
		if len(failed) > (len(in.parts)-1)/2 {
			yield(Lock{}, fmt.Errorf("inspect: Scan: too few servers answer: %w", errors.Join(failed...)))
		}
	}
}

// byName orders clients as Clients does.
func byName(a, b Client) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Host, b.Host), cmp.Compare(a.PID, b.PID), cmp.Compare(a.ID, b.ID))
}
