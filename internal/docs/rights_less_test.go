package docs

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/observe/locktrace"
	"github.com/fencelock/fencelock/rlock"
)

// What becomes of locks where a right is missing.
const (
	aloneFine  = ""                           // all works, and nothing is to be said: the right is for what competeForLock does not do
	noLine     = "lacks a right to the line"  // clients go on without the line; each that waits logs this
	mayNotHear = "may not subscribe"          // waiters poll
	mayNotTell = "refused to tell its"        // the same
	noHandoff  = "refuses to pass a lock on"  // each release goes to all
	mayNotAsk  = "there are sharded channels" // and there is no line
	isError    = "error"                      // Lock, a re-entry or Unlock says what is missing
)

// withoutRight is what becomes of locks without each word of a list. A word that is not here is isError.
var withoutRight = map[string][]string{
	"~fencelock_line:{account:*":         {noLine},
	"&fencelock_line:{account:*":         {mayNotHear},
	"&redisson_lock__channel:{account:*": {mayNotHear, mayNotTell},
	"+zadd":                              {noLine}, "+zcard": {noLine}, "+zrange": {noLine}, "+zrank": {noLine}, "+zrem": {noLine}, "+zscore": {noLine}, "+time": {noLine},
	"+publish": {noLine, mayNotTell}, "+spublish": {noLine, mayNotTell},
	"+subscribe": {mayNotHear}, "+ssubscribe": {mayNotHear},
	"+pubsub|shardnumsub": {mayNotAsk, mayNotHear, mayNotTell}, // and PUBLISH and SUBSCRIBE are not in the list
	"+hmget":              {noHandoff},
	"+get":                {aloneFine}, // repeats, floors
	"+set":                {aloneFine}, // floors
	"+ping":               {aloneFine}, // 3 quiet seconds
	"+asking":             {aloneFine}, // a slot that moves
	"+command":            {aloneFine},
	"+unsubscribe":        nil, // said or not, as it happens: a client that has no waiter left unsubscribes after a while
	"+sunsubscribe":       nil,
}

const (
	lessClients = 3
	lessCallers = 2
	lessRounds  = 5
	// lessCommands is how many scripts an acquire and its release may cost, of those that wait for others too.
	lessCommands = 20
)

// P30: without any one right clients compete for a lock as ever, and say what is missing, or they fail and say it. No client asks in a loop,
// and no lock is free while somebody waits.
func TestP30_OneRightLess(t *testing.T) {
	t.Parallel()
	lists := rightsLists(t)
	t.Run("server", func(t *testing.T) {
		s := onServer(t)
		s.eachLess(t, lists["server"], s.identity(lists))
	})
	t.Run("cluster", func(t *testing.T) {
		if s, c := onCluster(t); c.Sharded() {
			s.eachLess(t, lists["cluster"], s.identity(lists))
		}
	})
}

func (s *rightsSite) eachLess(t *testing.T, list, more []string) {
	for i, word := range list {
		t.Run(word, func(t *testing.T) {
			locktest.NoError(t, s.grant(slices.Concat(list[:i], list[i+1:], more)))
			ctx, cancel := context.WithTimeoutCause(t.Context(), rightsBound, fmt.Errorf("not within %v", rightsBound))
			defer cancel()
			want, known := withoutRight[word]
			if !known {
				want = []string{isError}
			}
			s.tries++
			u := &rightsUse{rightsSite: s, ctx: ctx, prefix: fmt.Sprint("account:less:", s.tries)}
			asked, began := u.scripts(), time.Now()
			logs, err := u.competeForLock(want)
			asked = u.scripts() - asked
			if asked > lessCommands*lessClients*lessCallers*lessRounds+int(time.Since(began)/(100*time.Millisecond))*lessClients {
				t.Errorf("the clients have sent %d scripts in %v", asked, time.Since(began))
			}
			said := u.said(t, logs)
			switch {
			case want == nil:
				locktest.NoError(t, err)
			case want[0] == isError:
				if err == nil || !namesRight(err, word) {
					t.Errorf("the error is %v, which does not name %s", err, word)
				}
			default:
				locktest.NoError(t, err)
				for what := range said {
					if !slices.Contains(want, what) {
						t.Errorf("logged: %q", what)
					}
				}
				for _, what := range want {
					if what != aloneFine && said[what] == 0 {
						t.Errorf("no client has logged %q", what)
					}
				}
			}
			t.Logf("%d scripts, said %v, %.100v", asked, said, err)
		})
	}
}

// said returns how many clients have logged what. A client that says something twice fails the test.
func (u *rightsUse) said(t *testing.T, logs []*locktest.Log) map[string]int {
	said := map[string]int{}
	for _, log := range logs {
		for _, what := range []string{noLine, mayNotHear, mayNotTell, noHandoff, mayNotAsk} {
			if n := log.Count(what); n > 1 {
				t.Errorf("a client has logged %d times: %q", n, log.With(what))
			} else if n == 1 {
				said[what]++
			}
		}
	}
	return said
}

// namesRight tells whether an error names the command, or says that it is the keys.
func namesRight(err error, word string) bool {
	if command, is := strings.CutPrefix(word, "+"); is {
		command, _, _ = strings.Cut(command, "|")
		return strings.Contains(strings.ToUpper(err.Error()), strings.ToUpper(command))
	}
	return strings.Contains(err.Error(), "key")
}

// scripts is how many scripts the servers were asked to run.
func (u *rightsUse) scripts() int { return u.called("evalsha") + u.called("eval") }

// competeForLock has clients take a lock from each other, while others of the same client wait too. It returns what each client has
// logged, and the first error.
func (u *rightsUse) competeForLock(want []string) (logs []*locktest.Log, err error) {
	ctx, fail := context.WithCancelCause(u.ctx)
	defer fail(nil)
	defer func() {
		for _, close := range slices.Backward(u.cleanup) {
			close()
		}
	}()
	name := u.prefix
	waits := make(chan struct{}, lessClients*lessCallers*lessRounds)
	var locks []*fenced.Lock
	for range lessClients {
		log := new(locktest.Log)
		opts := []rlock.Option{
			rlock.WithLogger(log.Logger()), rlock.WithUnlockTimeout(rightsBound), rlock.WithLease(lasting),
			rlock.WithTrace(&locktrace.Trace{WaitStarted: func(locktrace.WaitStarted) { waits <- struct{}{} }}),
		}
		if slices.Contains(want, noLine) && !slices.Contains(want, mayNotTell) {
			opts = append(opts, rlock.WithPollInterval(time.Hour)) // whom nobody tells sleeps
		}
		c, err := rlock.New(u.rdb(), opts...)
		if err != nil {
			return nil, err
		}
		u.atEnd(func() { _ = c.Close() })
		logs, locks = append(logs, log), append(locks, fenced.NewLock(c, name))
	}
	once := func(l *fenced.Lock, then func()) error {
		return l.Do(ctx, func(held context.Context, _ int64) error {
			then()
			return l.Do(held, func(context.Context, int64) error { return nil })
		})
	}
	ended := make(chan error, lessClients*lessCallers)
	held := make(chan struct{})
	compete := func(l *fenced.Lock) {
		var err error
		for range lessRounds {
			if err == nil {
				err = once(l, func() {})
			}
		}
		if err != nil {
			fail(err)
		}
		ended <- err
	}
	go func() { // the first one has the lock until all others wait for it
		err := once(locks[0], func() {
			close(held)
			for range lessClients*lessCallers - 1 {
				select {
				case <-waits:
				case <-ctx.Done():
				}
			}
			for _, what := range want {
				for what == noLine && ctx.Err() == nil && slices.ContainsFunc(logs[1:], func(l *locktest.Log) bool { return l.Count(noLine) == 0 }) {
					time.Sleep(time.Millisecond)
				}
			}
		})
		if err != nil {
			fail(err)
		}
		ended <- err
	}()
	select {
	case <-held:
	case <-ctx.Done():
	}
	for i, l := range locks {
		for n := range lessCallers {
			if i > 0 || n > 0 {
				go compete(l)
			}
		}
	}
	for range lessClients * lessCallers {
		<-ended
	}
	if ctx.Err() != nil {
		return logs, context.Cause(ctx)
	}
	return logs, nil
}
