package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

const (
	lease = 2 * time.Second // short, so that the story is; the default is 30 s
	name  = "account:42"
	plain = "plain"
)

// story is what the steps share: two processes, A and B.
type story struct {
	servers
	out   io.Writer
	began time.Time

	rdbs     [2][]redis.UniversalClient
	a, b     *fenced.Lock
	held     context.Context // A's
	token    int64           // the last one
	plainEnd time.Time       // of A's plain lock
}

func tell(ctx context.Context, all servers, out io.Writer) error {
	s := &story{servers: all, out: out, began: time.Now()}
	locks := [2]*fenced.Lock{}
	silent := rlock.WithLogger(slog.New(slog.DiscardHandler)) // the story tells what fails
	for i := range locks {
		s.rdbs[i] = all.clients()
		client, err := quorum.New(s.rdbs[i], quorum.WithLockOptions(rlock.WithLease(lease), silent))
		if err != nil {
			return err
		}
		defer func() {
			client.Close()
			for _, rdb := range s.rdbs[i] {
				rdb.Close()
			}
		}()
		locks[i] = quorum.NewLock(client, name, fenced.WithClockFloor()) // server 3 forgets the tokens too
	}
	s.a, s.b = locks[0], locks[1]
	for _, step := range []struct {
		title string
		run   func(context.Context) error
	}{
		{"Five servers, of which three are a majority", s.all},
		{"Two of them, 4 and 5, are cut off; A takes the lock on the other three", s.two},
		{"Server 3 restarts empty, 4 and 5 are back, 1 and 2 are cut off: three servers know nothing of A's lock", s.restart},
		{"B wants the lock while A has it", s.compete},
		{"A's lease ends, and server 3 is old enough to count", s.after},
	} {
		fmt.Fprintf(out, "\n%s\n", step.title)
		if err := step.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", step.title, err)
		}
	}
	fmt.Fprintln(out, "\nok: the lock outlasted two servers, one that forgot it gave it to nobody else, and tokens grew")
	return nil
}

func (s *story) say(format string, args ...any) {
	fmt.Fprintf(s.out, "%7.3fs  %s\n", time.Since(s.began).Seconds(), fmt.Sprintf(format, args...))
}

// grew notes a token.
func (s *story) grew(token int64) error {
	if token <= s.token {
		return fmt.Errorf("token %d after %d", token, s.token)
	}
	s.token = token
	return nil
}

func (s *story) all(ctx context.Context) error {
	err := s.a.Do(ctx, func(ctx context.Context, token int64) error {
		s.say("A has the lock, token %d, on servers %s", token, s.have(name))
		return s.grew(token)
	})
	// Unlock does not wait for the slowest server.
	for end := time.Now().Add(time.Second); s.have(name) != "none" && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
	s.say("A has unlocked it, it is on servers: %s", s.have(name))
	return err
}

func (s *story) two(ctx context.Context) error {
	s.servers[3].cutOff()
	s.servers[4].cutOff()
	held, token, err := s.a.LockLeaseAndGetToken(ctx, lease)
	if err != nil {
		return err
	}
	s.held = held
	s.say("A has the lock, token %d, on servers %s, for %v", token, s.have(name), lease)
	until, ok := plainLock(ctx, s.rdbs[0], plain, lease)
	if !ok {
		return errors.New("the plain lock on three servers: A does not get it")
	}
	s.plainEnd = until
	s.say("A has a plain Redlock too, on servers %s", s.have(plain))
	return s.grew(token)
}

func (s *story) restart(context.Context) error {
	time.Sleep(200 * time.Millisecond) // nothing that A sent is under way any more
	for _, err := range []error{s.servers[2].restartEmpty(), s.servers[3].reconnect(), s.servers[4].reconnect()} {
		if err != nil {
			return err
		}
	}
	s.servers[0].cutOff()
	s.servers[1].cutOff()
	s.say("the lock is on servers %s, the plain Redlock on %s; B can ask 3 4 5", s.have(name), s.have(plain))
	return nil
}

func (s *story) compete(ctx context.Context) error {
	if _, ok := plainLock(ctx, s.rdbs[1], plain, lease); !ok || !time.Now().Before(s.plainEnd) {
		return errors.New("the plain lock: B does not get it while A has it, and the example shows nothing")
	}
	s.say("plain Redlock: B has it, and so has A: two holders")
	_, err := s.b.TryLock(ctx, 0, 0)
	for errors.Is(err, rlock.ErrNotAcquired) && s.held.Err() == nil { // what B's own first try took on servers 4 and 5 may not be released yet
		_, err = s.b.TryLock(ctx, 0, 0)
	}
	if s.held.Err() != nil {
		return errors.New("the machine is too slow: A's lock was over before B was refused")
	}
	var why *quorum.MajorityError
	if !errors.As(err, &why) {
		return fmt.Errorf("while A has the lock, B is not refused: %v", err)
	}
	s.say("quorum: B is refused:")
	for _, failed := range why.Failed {
		if errors.Is(failed, quorum.ErrRestarted) {
			s.say("  server 3: %v", failed.Err)
		}
	}
	return nil
}

func (s *story) after(ctx context.Context) (err error) {
	held, token, err := s.b.LockAndGetToken(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.b.Unlock(held)) }()
	if s.held.Err() == nil {
		return errors.New("two holders: B has the lock while A has it")
	}
	s.say("A: %v", context.Cause(s.held))
	s.say("B has the lock, token %d, on servers %s", token, s.have(name))
	if err := s.grew(token); err != nil {
		return err
	}
	if err := s.a.Unlock(s.held); !errors.Is(err, rlock.ErrLost) {
		return fmt.Errorf("at the end, A's Unlock says %v", err)
	}
	return nil
}
