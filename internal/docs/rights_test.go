package docs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redisserver"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// rightsPage has the lists of rights: blocks of code that begin with "acl" and the list's name.
const rightsPage = "docs/operations.md"

var rightsBlock = regexp.MustCompile("(?s)```acl ([a-z0-9.-]+)\n(.*?)```")

// rightsLists returns the lists of the page by their names, each as the words that ACL SETUSER takes.
func rightsLists(t *testing.T) map[string][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, rightsPage))
	locktest.NoError(t, err)
	lists := map[string][]string{}
	for _, block := range rightsBlock.FindAllStringSubmatch(string(text), -1) {
		words := strings.Fields(block[2])
		if redisserver.IsRedis6() { // which has no rights to read alone
			for i := range words {
				words[i] = strings.TrimPrefix(words[i], "%R")
			}
		}
		lists[block[1]] = words
	}
	return lists
}

const (
	rightsUser = "limited"
	rightsPass = "secret"
	// rightsBound is how long one try of a list may take. A try that shows something ends long before.
	rightsBound = 2 * time.Minute
)

// A rightsSite is servers on which a list of rights is tried.
type rightsSite struct {
	t       *testing.T
	nodes   []*redistest.Server
	admin   []*redis.Client
	connect func() redis.UniversalClient // a new client as the user
	sharded bool                         // the clients use sharded channels
	nodeOf  func(name string) string     // the node that has a lock; nil where there is one
	tries   int
}

// newRightsSite returns a site on these servers.
func newRightsSite(t *testing.T, connect func() redis.UniversalClient, nodes ...*redistest.Server) *rightsSite {
	t.Helper()
	realtime.Test(t, "calls without a right, which end within seconds")
	s := &rightsSite{t: t, nodes: nodes, connect: connect}
	for _, node := range nodes {
		s.admin = append(s.admin, node.Client())
	}
	return s
}

// onServer returns a site on one server.
func onServer(t *testing.T, args ...string) *rightsSite {
	t.Helper()
	server := redistest.Real(t, args...)
	return newRightsSite(t, func() redis.UniversalClient {
		return redis.NewClient(&redis.Options{Addr: server.Addr(), Username: rightsUser, Password: rightsPass})
	}, server)
}

// identity is the list for what go-redis says of itself on each connection to this server, where it has one.
func (s *rightsSite) identity(lists map[string][]string) []string {
	version := s.nodes[0].Info("server", "redis_version")
	switch {
	case strings.HasPrefix(version, "6."):
		return lists["identity-6.2"]
	case strings.HasPrefix(version, "7.0."): // the subcommand is unknown there, also to ACL SETUSER
		return nil
	}
	return lists["identity"]
}

// withoutIt ends the test on a server of one of these versions, which have not got what the test is about, and fails the test on any other server.
func (s *rightsSite) withoutIt(t *testing.T, why string, versions ...string) {
	t.Helper()
	version := s.nodes[0].Info("server", "redis_version")
	if !slices.ContainsFunc(versions, func(v string) bool { return strings.HasPrefix(version, v) }) {
		t.Fatalf("%s, and that on a server of version %s", why, version)
	}
	t.Skip("DID NOT RUN on version ", version, ": ", why)
}

// grant makes the user one with these rights and no others.
func (s *rightsSite) grant(rights []string) error {
	args := []any{"acl", "setuser", rightsUser, "reset", "on", ">" + rightsPass, "resetchannels", "-@all"}
	for _, word := range rights {
		args = append(args, word)
	}
	for _, admin := range s.admin {
		for _, command := range [][]any{{"acl", "deluser", rightsUser}, args, {"acl", "log", "reset"}, {"script", "flush"}} {
			if err := admin.Do(context.Background(), command...).Err(); err != nil && !strings.HasPrefix(err.Error(), "ERR unknown command") {
				return fmt.Errorf("%v: %w", command, err) // but for a Sentinel, which has no scripts
			}
		}
	}
	return nil
}

// refused returns what the servers have refused the user, as ACL LOG has it.
func (s *rightsSite) refused() (all []string) {
	for _, admin := range s.admin {
		entries, err := admin.ACLLog(context.Background(), 1000).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			s.t.Errorf("ACL LOG: %v", err)
		}
		for _, e := range entries {
			if e.Username == rightsUser {
				all = append(all, fmt.Sprintf("%s %s (%s)", e.Reason, e.Object, e.Context))
			}
		}
	}
	return all
}

// A rightsUse is one try of a list. Its methods end the try where something does not work.
type rightsUse struct {
	*rightsSite
	ctx      context.Context
	patience time.Duration  // how long an Unlock may take, and Close
	opts     []rlock.Option // of the clients
	prefix   string         // of the names of this try's locks
	log      locktest.Log

	mu      sync.Mutex
	cleanup []func() // guarded by mu; the last one is called first
}

// atEnd has a function called when the try has ended.
func (u *rightsUse) atEnd(do func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cleanup = append(u.cleanup, do)
}

// A rightsFailure is why a try ended.
type rightsFailure struct{ err error }

// must ends the try on an error.
func (u *rightsUse) must(err error, what string, args ...any) {
	if err != nil {
		panic(rightsFailure{fmt.Errorf("%s: %w", fmt.Sprintf(what, args...), err)})
	}
}

// eventually waits until cond is true, or the try ends.
func (u *rightsUse) eventually(cond func() bool, what string, args ...any) {
	for !cond() {
		select {
		case <-u.ctx.Done():
			u.must(context.Cause(u.ctx), what, args...)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// await waits for what comes over the channel, or the end of the try.
func await[T any](u *rightsUse, ch <-chan T, what string) T {
	select {
	case v := <-ch:
		return v
	case <-u.ctx.Done():
		u.must(context.Cause(u.ctx), "%s", what)
		panic("not reached")
	}
}

// rdb returns a new Redis client as the user.
func (u *rightsUse) rdb() redis.UniversalClient {
	rdb := u.connect()
	u.atEnd(func() { _ = rdb.Close() })
	return rdb
}

// client returns a new client of locks as the user. Its waiters look for themselves once an hour.
func (u *rightsUse) client(opts ...rlock.Option) *rlock.Client {
	opts = append([]rlock.Option{
		rlock.WithLogger(u.log.Logger()), rlock.WithPollInterval(time.Hour), rlock.WithUnlockTimeout(u.patience), rlock.WithPatience(rightsBound),
	}, slices.Concat(u.opts, opts)...)
	c, err := rlock.New(u.rdb(), opts...)
	u.must(err, "New")
	u.atEnd(func() { _ = c.Close() })
	return c
}

// called is how often the servers have executed a command.
func (u *rightsUse) called(command string) (n int) {
	for _, node := range u.nodes {
		stat := node.Info("commandstats", "cmdstat_"+command)
		if _, rest, found := strings.Cut(stat, "calls="); found {
			count, _, _ := strings.Cut(rest, ",")
			calls, _ := strconv.Atoi(count)
			n += calls
		}
	}
	return n
}

// inLine is how many clients are in the line of the lock.
func (u *rightsUse) inLine(name string) (n int) {
	for _, admin := range u.admin {
		n += int(admin.ZCard(u.ctx, "fencelock_line:{"+name+"}").Val()) // a node that has not got the slot says MOVED
	}
	return n
}

// try does do as a user with these rights. It returns the error of do, or what the servers have refused, which ends the try, or what
// the clients have logged about rights.
func (s *rightsSite) try(rights []string, patience time.Duration, do func(u *rightsUse)) error {
	if err := s.grant(rights); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(s.t.Context(), rightsBound, fmt.Errorf("not within %v", rightsBound))
	defer cancel()
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	s.tries++
	u := &rightsUse{rightsSite: s, ctx: ctx, patience: patience, prefix: fmt.Sprint("account:", s.tries)}
	done := make(chan error, 1)
	go func() {
		var err error
		defer func() {
			if failed := recover(); failed != nil {
				failure, is := failed.(rightsFailure)
				if !is {
					panic(failed)
				}
				err = failure.err
			}
			for _, close := range slices.Backward(u.cleanup) {
				close()
			}
			done <- err
		}()
		do(u)
	}()
	for {
		refused := s.refused()
		if len(refused) > 0 {
			end(fmt.Errorf("refused: %s", strings.Join(refused, "; ")))
		}
		select {
		case err := <-done:
			switch refused := s.refused(); {
			case len(refused) > 0:
				return fmt.Errorf("refused: %s (%v)", strings.Join(refused, "; "), err)
			case err == nil && slices.ContainsFunc(ofRights, func(word string) bool { return u.log.Count(word) > 0 }):
				return fmt.Errorf("logged: %s", &u.log)
			}
			return err
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// ofRights are words of what clients log where a right is missing. On a busy machine they log other things too, such as a connection that
// was closed.
var ofRights = []string{"NOPERM", "permission", "right", "refuse", "needs"}

// exact requires that do works with these rights, nothing is refused or logged, and that it does not without any word of list. The
// words of more that are not in list are the user's all the time.
func (s *rightsSite) exact(list, more []string, do func(u *rightsUse)) {
	s.t.Helper()
	if len(list) == 0 {
		s.t.Fatalf("no such list in %s", rightsPage)
	}
	more = slices.DeleteFunc(slices.Clone(more), func(word string) bool { return slices.Contains(list, word) })
	if err := s.try(slices.Concat(list, more), rightsBound/4, do); err != nil {
		s.t.Fatalf("with the whole list: %v", err)
	}
	for i, word := range list {
		began := time.Now()
		err := s.try(slices.Concat(list[:i], list[i+1:], more), time.Second, do)
		for again := 0; err == nil && again < 4; again++ { // some words are for what a busy machine does not always come to
			err = s.try(slices.Concat(list[:i], list[i+1:], more), time.Second, do)
		}
		if err == nil {
			s.t.Errorf("the list is not exact: all works without %s, five times", word)
		} else if testing.Verbose() {
			s.t.Logf("without %s, after %v: %.200v", word, time.Since(began).Round(time.Millisecond), err)
		}
	}
}
