package scripts

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// once is a client that tries nothing twice by itself, and nothing for long.
func once(o *redis.Options) {
	o.MaxRetries, o.DialerRetries = -1, 1
	o.DialTimeout, o.ReadTimeout = 5*time.Second, 5*time.Second
}

func try(c caller) error {
	_, err := c.Do(c.TB.Context(), Acquire(c.keys, true, newField(), lease))
	return err
}

// judge fails the test unless Unanswered and Passing say this of the error.
func judge(t *testing.T, err error, unanswered, passing bool) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if got := Unanswered(err); got != unanswered {
		t.Errorf("Unanswered(%v) is %v (%#v)", err, got, err)
	}
	if got := Passing(err); got != passing {
		t.Errorf("Passing(%v) is %v (%#v)", err, got, err)
	}
	wrapped := fmt.Errorf("rlock: lock %q: %w", "x", err) // as callers do
	if Unanswered(wrapped) != Unanswered(err) || Passing(wrapped) != Passing(err) {
		t.Errorf("wrapped, %v is judged otherwise", err)
	}
}

func TestErrors_NoErrorIsNeither(t *testing.T) {
	if Unanswered(nil) || Passing(nil) || explain(&Keys{}, nil) != nil {
		t.Error("nil is judged to be an error")
	}
}

func TestErrors_ARefusedConnectionSentNothing(t *testing.T) {
	server := redistest.Real(t)
	c := newCaller(t, server.Client(once))
	server.Kill()
	judge(t, try(c), false, true)
	if err := try(c); !strings.Contains(err.Error(), "refused") {
		t.Errorf("this is another error than the one of this test: %v", err)
	}
}

func TestErrors_AConnectionThatTakesTooLongSentNothing(t *testing.T) {
	c := newCaller(t, redistest.Client(t, redistest.Start(t), once, func(o *redis.Options) { o.DialTimeout = 1 }))
	err := try(c)
	judge(t, err, false, true)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("this is another error than the one of this test: %v", err)
	}
}

// The pool answers from the error of its last dial after some dials failed: that was no connection either.
func TestErrors_ADownServerSendsNothingForLong(t *testing.T) {
	server := redistest.Real(t)
	c := newCaller(t, server.Client(once, func(o *redis.Options) { o.PoolSize = 2 }))
	server.Kill()
	for range 10 {
		judge(t, try(c), false, true)
	}
	server.Restart()
	redistest.Eventually(t, 20*time.Second, func() bool { return try(c) == nil }, "the client finds the server again")
}

func TestErrors_AServerKilledInTheMiddleIsUnanswered(t *testing.T) {
	server := redistest.Real(t)
	c := newCaller(t, server.Client(once))
	if err := try(c); err != nil {
		t.Fatal(err)
	}
	server.Freeze() // the command gets there, and no further
	failed := make(chan error, 1)
	h := &counting{}
	c.rdb.AddHook(h)
	go func() { failed <- try(c) }()
	redistest.Eventually(t, 20*time.Second, func() bool { return h.sent.Load() > 0 }, "the command is on its way")
	process, err := os.FindProcess(server.Pid())
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil { // without the moment of life that server.Kill gives a frozen process
		t.Fatal(err)
	}
	judge(t, <-failed, true, true)
}

func TestErrors_AFrozenServerIsUnanswered(t *testing.T) {
	server := redistest.Real(t)
	c := newCaller(t, server.Client(once, func(o *redis.Options) { o.ReadTimeout = 50 * time.Millisecond }))
	if err := try(c); err != nil {
		t.Fatal(err)
	}
	server.Freeze()
	defer server.Thaw()
	err := try(c)
	judge(t, err, true, true)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("this is another error than the one of this test: %v", err)
	}
}

func TestErrors_ALostReplyIsUnanswered(t *testing.T) {
	addr := redistest.Start(t)
	proxy := redistest.NewProxy(t, addr)
	c := newCaller(t, redistest.Client(t, proxy.Addr(), once))
	proxy.On("the reply is lost", redistest.Command("evalsha"), redistest.SwallowReply)
	judge(t, try(c), true, true)
}

// What servers say in the ordinary life of an installation, and what stays wrong.
func TestErrors_RepliesOfAServer(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t))
	for said, passing := range map[string]bool{
		"LOADING Redis is loading the dataset in memory":                                              true,
		"READONLY You can't write against a read only replica.":                                       true,
		"READONLY You can't write against a read only replica. script: abc, on @user_script:20.":      true,
		"ERR Error running script (call to f_1): @user_script:1: -READONLY You can't write against a": true, // Redis 6
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.":            true,
		"CLUSTERDOWN Hash slot not served":                                                            true,
		"CLUSTERDOWN The cluster is down":                                                             true,
		"TRYAGAIN Multiple keys request during rehashing of slot":                                     true,
		"NOREPLICAS Not enough good replicas to write.":                                               true,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.":      true,
		"ERR max number of clients reached":                                                           true,
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to":             true,
		"no upstream host": true, // Envoy

		"NOAUTH Authentication required.":                                                      false,
		"WRONGPASS invalid username-password pair or user is disabled.":                        false,
		"NOPERM this user has no permissions to run the 'evalsha' command":                     false,
		"WRONGTYPE Operation against a key holding the wrong kind of value":                    false,
		"OOM command not allowed when used memory > 'maxmemory'.":                              false,
		"CROSSSLOT Keys in request don't hash to the same slot":                                false,
		"ERR unknown command 'evalsha', with args beginning with: 'x'":                         false,
		"ERR value is not an integer or out of range":                                          false,
		"BUSYKEY Target key name already exists.":                                              false,
		"ERR fencing counter has reached 2^53, where Lua cannot count exactly script: x":       false,
		"ERR This instance has cluster support disabled":                                       false,
		"UNKILLABLE Sorry the script already executed write commands against the dataset. You": false,
	} {
		c := newCaller(t, redistest.Client(t, proxy.Addr(), once))
		proxy.On(said, redistest.Command("evalsha"), redistest.Refuse(said))
		err := try(c)
		judge(t, err, false, passing)
		if err != nil && !strings.Contains(err.Error(), said) {
			t.Errorf("%q became %v", said, err)
		}
	}
}

// Envoy says so when it has lost the server, to which it may have sent the command.
func TestP3_AProxyThatHasLostItsServerIsUnanswered(t *testing.T) {
	proxy := redistest.NewProxy(t, redistest.Start(t))
	c := newCaller(t, redistest.Client(t, proxy.Addr(), once))
	proxy.On("lost", redistest.Command("evalsha"), redistest.Refuse("upstream failure"))
	err := try(c)
	judge(t, err, true, true)
	if err == nil || !strings.Contains(err.Error(), "upstream failure") || Refused(err) {
		t.Errorf("it became %v", err)
	}
}

// The names in an error are the user's: a lock called LOADING is not on its way up.
func TestErrors_ANameInAnErrorDecidesNothing(t *testing.T) {
	rdb := redistest.New(t)
	for _, word := range passingReplies {
		c := newCaller(t, rdb)
		c.keys = KeysOf(fmt.Sprintf("%s %s", c.keys.Lock, word))
		rdb.Set(t.Context(), c.keys.Lock, "x", 0)
		err := try(c)
		judge(t, err, false, false)
		if err == nil || !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), word) {
			t.Errorf("this is another error than the one of this test: %v", err)
		}
		err = c.renew(newField(), lease)
		judge(t, err, false, false)
	}
	judge(t, fmt.Errorf("%w: %v", errReply, "LOADING"), false, false) // nor what something that is not Redis says
}

func TestErrors_WrongType(t *testing.T) {
	rdb := redistest.New(t)
	c := newCaller(t, rdb)
	rdb.Set(t.Context(), c.keys.Lock, "x", 0)
	for what, ask := range map[string]func() error{
		"acquire": func() error { return try(c) },
		"level": func() error {
			_, err := c.Do(t.Context(), Level(c.keys, true, newField(), lease, 2, 1))
			return err
		},
		"unlock":  func() error { _, err := c.Do(t.Context(), Unlock(c.keys, newField(), false)); return err },
		"renew":   func() error { return c.renew(newField(), lease) },
		"inspect": func() error { _, err := c.Inspect(t.Context(), c.keys, newField()); return err },
	} {
		err := ask()
		judge(t, err, false, false)
		if !strings.Contains(err.Error(), "WRONGTYPE") || !strings.Contains(err.Error(), c.keys.Lock) {
			t.Errorf("%s says %v", what, err)
		}
	}
	if v := rdb.Get(t.Context(), c.keys.Lock).Val(); v != "x" {
		t.Errorf("the key of another type is now %q", v)
	}
}

func TestErrors_NoPassword(t *testing.T) {
	server := redistest.Real(t, "--requirepass", "secret")
	err := try(newCaller(t, server.Client(once)))
	judge(t, err, false, false)
	if !strings.Contains(err.Error(), "NOAUTH") {
		t.Errorf("without a password: %v", err)
	}
	err = try(newCaller(t, server.Client(once, func(o *redis.Options) { o.Password = "wrong" })))
	judge(t, err, false, false)
	if !strings.Contains(err.Error(), "WRONGPASS") {
		t.Errorf("with a wrong one: %v", err)
	}
	if err := try(newCaller(t, server.Client(once, func(o *redis.Options) { o.Password = "secret" }))); err != nil {
		t.Errorf("with the right one: %v", err)
	}
}

func TestErrors_ABusyServer(t *testing.T) {
	server := redistest.Real(t, "--lua-time-limit", "1")
	c := newCaller(t, server.Client(once))
	busy := server.Client(func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = -1, -1 })
	done := make(chan error, 1)
	go func() { done <- busy.Eval(context.Background(), "while true do end", nil).Err() }()
	redistest.Eventually(t, 20*time.Second, func() bool { return redis.HasErrorPrefix(try(c), "BUSY ") }, "Redis is busy")
	judge(t, try(c), false, true)
	if err := server.Client().ScriptKill(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	<-done
	redistest.Eventually(t, 20*time.Second, func() bool { return try(newCaller(t, c.rdb)) == nil }, "Redis is not busy any more")
}

func TestErrors_LOADING(t *testing.T) {
	realtime.Test(t, "a server that loads for half a minute")
	server := redistest.Real(t, "--key-load-delay", "100000", "--rdbcompression", "no")
	rdb := server.Client()
	pipe := rdb.Pipeline()
	for i := range 300 { // 0.1 s each: loading outlasts the test, which kills the server
		pipe.Set(t.Context(), fmt.Sprint("filler-", i), strings.Repeat("x", 128<<10), 0) // it answers once for 2 MiB
	}
	if _, err := pipe.Exec(t.Context()); err != nil {
		t.Fatal(err)
	}
	c := newCaller(t, server.Client(once))
	// It fails when the test ends. A client that does not wait for it would say it again, and the server begin anew with what it has
	// loaded by then.
	patient := server.Client(func(o *redis.Options) { o.ReadTimeout, o.MaxRetries = -1, -1 })
	go patient.Do(context.Background(), "debug", "reload")
	redistest.Eventually(t, 20*time.Second, func() bool { return redis.HasErrorPrefix(try(c), "LOADING") }, "Redis is loading")
	judge(t, try(c), false, true)
}

func TestErrors_AnExhaustedPoolSentNothing(t *testing.T) {
	addr := redistest.Start(t)
	rdb := redistest.Client(t, addr, once, func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, 20*time.Millisecond })
	conn := rdb.Conn() // takes the only connection
	defer func() { _ = conn.Close() }()
	if err := conn.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	err := try(newCaller(t, rdb))
	judge(t, err, false, true)
	if !errors.Is(err, redis.ErrPoolTimeout) {
		t.Errorf("this is another error than the one of this test: %v", err)
	}

	limited := redistest.Client(t, addr, once, func(o *redis.Options) { o.PoolSize, o.MaxActiveConns = 2, 1 })
	other := limited.Conn()
	defer func() { _ = other.Close() }()
	if err := other.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	err = try(newCaller(t, limited))
	judge(t, err, false, true)
	if !errors.Is(err, redis.ErrPoolExhausted) {
		t.Errorf("this is another error than the one of this test: %v", err)
	}
}

func TestErrors_AClosedClient(t *testing.T) {
	rdb := redistest.Client(t, redistest.Start(t), once)
	_ = rdb.Close()
	err := try(newCaller(t, rdb))
	judge(t, err, false, false)
	if !errors.Is(err, redis.ErrClosed) {
		t.Errorf("this is another error than the one of this test: %v", err)
	}
}

// A context that has ended may have ended while the command was under way: nobody knows.
func TestErrors_Contexts(t *testing.T) {
	rdb := redistest.New(t)
	c := newCaller(t, rdb)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()

	if err := try(c); err != nil {
		t.Fatal(err)
	}
	for _, ctx := range []context.Context{ended, late} {
		if _, err := c.Do(ctx, Acquire(c.keys, true, newField(), lease)); err != nil { // go-redis may not ask the context
			judge(t, err, true, errors.Is(err, context.DeadlineExceeded))
		}
	}
	judge(t, context.Canceled, true, false)
	judge(t, context.DeadlineExceeded, true, true)
}

// A server that runs no scripts, or not these, is an error that says what to do.
func TestErrors_ServersWithoutScripts(t *testing.T) {
	for words, remedy := range map[string]string{
		"ERR unknown command 'EVALSHA', with args beginning with: ":   "EVALSHA and EVAL",
		"unsupported command 'evalsha'":                               "way past the proxy",
		"ERR This instance has Lua scripting support disabled":        "--lua-transaction-mode",
		"ERR script tried accessing undeclared key, key: {rw}:1:-2:1": "allow-undeclared-keys",
	} {
		if err := explain(KeysOf("l"), replyError(words)); !strings.Contains(err.Error(), remedy) || !strings.Contains(err.Error(), words) {
			t.Errorf("%v: does not say %q", err, remedy)
		}
	}
}
