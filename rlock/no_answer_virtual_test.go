package rlock_test

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/rlock"
)

// hangingDial is what an address does that drops what is sent to it: nothing, until the DialTimeout of go-redis.
func hangingDial(o *redis.Options) {
	o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		<-ctx.Done()
		return nil, &net.OpError{Op: "dial", Net: network, Err: ctx.Err()}
	}
}

// Inv12: a call leaves when it has waited for an answer for its patience, or, with wait 0, for a second: whatever it is that hangs, which the
// error says.
func TestInv12_NoAnswer(t *testing.T) {
	const patience = 2 * time.Second
	silent := func(t *testing.T, m *miniredis.Miniredis) *redis.Client {
		link := &slowLink{way: time.Hour}
		return link.redis(t, m)
	}
	for what, c := range map[string]struct {
		connect func(t *testing.T, m *miniredis.Miniredis) *redis.Client
		says    string
	}{
		"the dial": {func(t *testing.T, m *miniredis.Miniredis) *redis.Client {
			return redistest.PipeClient(t, m, hangingDial)
		}, "dial"},
		"Redis": {silent, "no answer from Redis"},
	} {
		for _, call := range []struct {
			what  string
			wait  time.Duration // -1: Lock
			bound time.Duration
		}{{"Lock", -1, patience}, {"TryLock with a long wait", time.Minute, patience}, {"TryLock with a short wait", patience / 2, patience / 2}, {"TryLock that does not wait", 0, time.Second}} {
			t.Run(what+" hangs/"+call.what, func(t *testing.T) {
				locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
					defer locktest.Sleep(3 * time.Minute) // go-redis lets go of what it has begun
					client := newClient(t, c.connect(t, m), rlock.WithPatience(patience), rlock.WithUnlockTimeout(time.Millisecond))
					defer client.Close() // which ends the releases
					l := rlock.NewLock(client, "l")
					began := time.Now()
					var err error
					if call.wait < 0 {
						_, err = l.Lock(t.Context())
					} else {
						_, err = l.TryLock(t.Context(), call.wait, 0)
					}
					locktest.Equal(t, "took", time.Since(began), call.bound)
					wantTold(t, err, c.says)
					locktest.IsError(t, err, context.DeadlineExceeded)
				})
			})
		}
	}
}

// Inv12: the patience of a call that waits for others begins with the command that gets no answer, also where somebody else's call has
// found Redis silent, and is not one more for each call that waits.
func TestInv12_NoAnswerForManyCalls(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
		defer locktest.Sleep(3 * time.Minute)
		const patience = 2 * time.Second
		client := newClient(t, redistest.PipeClient(t, m, hangingDial), rlock.WithPatience(patience), rlock.WithUnlockTimeout(time.Millisecond))
		defer client.Close()
		l := rlock.NewLock(client, "l")
		took := make(chan time.Duration, 10)
		for range cap(took) {
			began := time.Now()
			go func() {
				_, _ = l.Lock(t.Context())
				took <- time.Since(began)
			}()
			locktest.Sleep(100 * time.Millisecond)
		}
		for range cap(took) {
			locktest.Equal(t, "took", <-took, patience)
		}
	})
}

// Inv12: the time that replicas have for their confirmation is none of silence.
func TestInv12_ConfirmationIsNoSilence(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
		link := &slowLink{way: 250 * time.Millisecond}
		c := newClient(t, link.redis(t, m), rlock.WithReplicas(1, 4*time.Second))
		_, err := rlock.NewLock(c, "l").TryLock(t.Context(), 0, 0)
		locktest.IsNotError(t, err, context.DeadlineExceeded)
		t.Log(err)
	})
}

// Inv12: where the server ends each connection at its first command, as one that is for TLS alone, and a proxy that does not know HELLO, the error
// says what that may be.
func TestInv12_ConnectionsThatEnd(t *testing.T) {
	locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, _ *redis.Client) {
		rdb := redistest.PipeClient(t, m, func(o *redis.Options) {
			o.Dialer = func(context.Context, string, string) (net.Conn, error) {
				conn, server := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, server) }()
				time.AfterFunc(time.Millisecond, func() { _ = server.Close() })
				return conn, nil
			}
		})
		_, err := rlock.NewLock(newClient(t, rdb), "l").Lock(t.Context())
		wantTold(t, err, "EOF", "TLS", "HELLO")
		_, err = rlock.NewLock(newClient(t, rdb), "l").TryLock(t.Context(), 2*time.Second, 0)
		wantTold(t, err, "EOF", "TLS", "HELLO")
		_, err = rlock.NewLock(newClient(t, rdb), "l").TryLock(t.Context(), 0, 0)
		wantTold(t, err, "EOF", "TLS", "HELLO")
	})
}
