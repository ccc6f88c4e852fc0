package pubsub_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fencelock/fencelock/pubsub"
)

// virtual runs a test in virtual time.
func virtual(t *testing.T, test func(t *testing.T, n *network)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newNetwork(t)) })
}

// want requires the state of a subscription once everything stands still.
func want(t *testing.T, l *listener, live bool, woken int64) {
	t.Helper()
	synctest.Wait()
	if l.Live() != live || l.woken.Load() != woken {
		t.Fatalf("live %v, woken %d times; want %v, %d", l.Live(), l.woken.Load(), live, woken)
	}
}

// subscribed is the number of the server's subscribers of the channel.
func subscribed(n *network, channel string) int { return n.server.PubSubNumSub(channel)[channel] }

func TestConfirmationAndMessagesWake(t *testing.T) {
	virtual(t, func(t *testing.T, n *network) {
		b, log := newBus(t, n.rdb, pubsub.Auto)
		first := listen(b, "a")
		want(t, first, true, 1) // confirmed
		second := listen(b, "a")
		want(t, second, true, 1) // there is nothing to wait for
		other := listen(b, "b")
		want(t, other, true, 1)
		n.server.Publish("a", "0")
		want(t, first, true, 2)
		want(t, second, true, 2)
		n.server.Publish("a", "whatever it says")
		want(t, first, true, 3)
		want(t, other, true, 1)
		second.Close()
		second.Close()
		n.server.Publish("a", "0")
		want(t, first, true, 4)
		want(t, second, true, 3) // nothing after Close
		if n.dialed() != 1 {
			t.Errorf("%d connections, want one", n.dialed())
		}
		if len(log.With("")) != 0 {
			t.Errorf("logged, though all is well: %q", log.With(""))
		}
	})
}

// A connection with nothing to say is kept: it answers the pings.
func TestQuietConnectionIsKept(t *testing.T) {
	virtual(t, func(t *testing.T, n *network) {
		b, log := newBus(t, n.rdb, pubsub.Auto)
		l := listen(b, "a")
		time.Sleep(time.Hour)
		want(t, l, true, 1)
		if n.dialed() != 1 || len(log.With("")) != 0 {
			t.Errorf("%d connections, logged %q", n.dialed(), log.With(""))
		}
	})
}

func TestSilentConnectionIsReplaced(t *testing.T) {
	virtual(t, func(t *testing.T, n *network) {
		b, _ := newBus(t, n.rdb, pubsub.Auto)
		l := listen(b, "a")
		time.Sleep(10 * time.Second)
		want(t, l, true, 1)
		n.mute()
		muted := time.Now()
		n.server.Publish("a", "0") // lost: whoever waits for it is woken when that is noticed
		for l.Live() && time.Since(muted) < time.Minute {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(muted); took < 3*time.Second || took > 8*time.Second {
			t.Errorf("noticed after %v, want 3 s to ping, 3 s to wait, and a second's tick", took)
		}
		if l.woken.Load() < 2 {
			t.Error("the loss of the connection did not wake")
		}
		time.Sleep(time.Second)
		want(t, l, true, 3) // lost, and confirmed anew
		n.server.Publish("a", "0")
		want(t, l, true, 4)
		if subscribed(n, "a") != 1 || n.open() != 1 {
			t.Errorf("%d subscribers, %d connections", subscribed(n, "a"), n.open())
		}
	})
}

func TestBrokenConnectionIsReplaced(t *testing.T) {
	virtual(t, func(t *testing.T, n *network) {
		b, _ := newBus(t, n.rdb, pubsub.Auto)
		l, other := listen(b, "a"), listen(b, "b")
		want(t, l, true, 1)
		n.cut(true)
		want(t, l, false, 2) // from now on no message comes: poll
		want(t, other, false, 2)
		late := listen(b, "c")
		time.Sleep(10 * time.Second)
		want(t, l, false, 2)
		n.up()
		time.Sleep(1100 * time.Millisecond)
		want(t, l, true, 3)
		want(t, other, true, 3)
		want(t, late, true, 1)
		n.server.Publish("c", "0")
		want(t, late, true, 2)
	})
}

func TestAttemptsToConnectAreSpacedOut(t *testing.T) {
	virtual(t, func(t *testing.T, n *network) {
		n.cut(true)
		b, log := newBus(t, n.rdb, pubsub.Auto)
		l := listen(b, "a")
		time.Sleep(10 * time.Second)
		before := n.dialed()
		time.Sleep(time.Minute)
		if dials := n.dialed() - before; dials < 55 || dials > 65 {
			t.Errorf("%d attempts within a minute, want one a second", dials)
		}
		want(t, l, false, 0)
		n.up()
		time.Sleep(1100 * time.Millisecond)
		want(t, l, true, 1)
		t.Logf("logged: %q", log.With(""))
	})
}

func TestChannelIsGivenUpASecondAfterItsLastSubscription(t *testing.T) {
	virtual(t, func(t *testing.T, n *network) {
		b, _ := newBus(t, n.rdb, pubsub.Auto)
		keep := listen(b, "b")
		first, second := listen(b, "a"), listen(b, "a")
		want(t, first, true, 1)
		first.Close()
		time.Sleep(10 * time.Second)
		want(t, second, true, 1) // the other one keeps it
		second.Close()
		time.Sleep(900 * time.Millisecond)
		if subscribed(n, "a") != 1 {
			t.Error("it is given up at once")
		}
		time.Sleep(1200 * time.Millisecond)
		synctest.Wait()
		if subscribed(n, "a") != 0 {
			t.Error("it is kept")
		}
		want(t, keep, true, 1)
		if n.open() != 1 {
			t.Errorf("%d connections, want one", n.open())
		}
		// and once more
		again := listen(b, "a")
		want(t, again, true, 1)
		n.server.Publish("a", "0")
		want(t, again, true, 2)
		want(t, keep, true, 1)
	})
}

func TestConnectionIsGivenUpWithItsLastChannel(t *testing.T) {
	virtual(t, func(t *testing.T, n *network) {
		b, _ := newBus(t, n.rdb, pubsub.Auto)
		for round := range 3 {
			l := listen(b, "a")
			want(t, l, true, 1)
			l.Close()
			time.Sleep(2100 * time.Millisecond)
			synctest.Wait()
			if n.open() != 0 || subscribed(n, "a") != 0 || n.dialed() != round+1 {
				t.Fatalf("round %d: %d connections, %d subscribers, %d dialed", round, n.open(), subscribed(n, "a"), n.dialed())
			}
		}
		// The bus is not closed, and nothing of it is left: else the bubble does not end.
	})
}

func TestResubscribeWhileTheChannelLingers(t *testing.T) {
	virtual(t, func(t *testing.T, n *network) {
		b, _ := newBus(t, n.rdb, pubsub.Auto)
		l := listen(b, "a")
		want(t, l, true, 1)
		for range 50 {
			l.Close()
			time.Sleep(900 * time.Millisecond)
			l = listen(b, "a")
			want(t, l, true, 1) // at once
			time.Sleep(300 * time.Millisecond)
			want(t, l, true, 1)
		}
		time.Sleep(10 * time.Second)
		n.server.Publish("a", "0")
		want(t, l, true, 2)
		if n.dialed() != 1 {
			t.Errorf("%d connections, want one", n.dialed())
		}
	})
}

// Whatever the moment at which a subscription comes while its channel or connection is being given up: it becomes live.
func TestResubscribeAtAnyMoment(t *testing.T) {
	virtual(t, func(t *testing.T, n *network) {
		b, _ := newBus(t, n.rdb, pubsub.Auto)
		for pause := time.Duration(0); pause < 2500*time.Millisecond; pause += 50 * time.Millisecond {
			l := listen(b, "a")
			want(t, l, true, 1)
			l.Close()
			time.Sleep(pause)
			l = listen(b, "a")
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if !l.Live() || l.woken.Load() == 0 {
				t.Fatalf("subscribed %v after the last one: live %v, woken %d times", pause, l.Live(), l.woken.Load())
			}
			before := l.woken.Load()
			n.server.Publish("a", "0")
			want(t, l, true, before+1)
			l.Close()
			time.Sleep(5 * time.Second)
		}
	})
}

func TestManyChannels(t *testing.T) {
	virtual(t, func(t *testing.T, n *network) {
		const channels = 2000
		b, _ := newBus(t, n.rdb, pubsub.Auto)
		all := make([]*listener, channels)
		for i := range all {
			all[i] = listen(b, fmt.Sprint(i))
		}
		for i := range all {
			want(t, all[i], true, 1)
		}
		n.cut(false) // all of them come back
		time.Sleep(time.Second)
		for i := range all {
			want(t, all[i], true, 3)
		}
		for i := 0; i < channels; i += 7 {
			n.server.Publish(fmt.Sprint(i), "0")
		}
		for i := range all {
			woken := int64(3)
			if i%7 == 0 {
				woken++
			}
			want(t, all[i], true, woken)
		}
		for i := range all {
			all[i].Close()
		}
		time.Sleep(2100 * time.Millisecond)
		synctest.Wait()
		if n.open() != 0 {
			t.Errorf("%d connections are left", n.open())
		}
	})
}

func TestCloseEndsEverything(t *testing.T) {
	for what, meanwhile := range map[string]func(n *network){
		"connected": func(*network) {},
		"muted":     (*network).mute,
		"away":      func(n *network) { n.cut(true); time.Sleep(3 * time.Second) },
	} {
		t.Run(what, func(t *testing.T) {
			virtual(t, func(t *testing.T, n *network) {
				b, _ := newBus(t, n.rdb, pubsub.Auto)
				l := listen(b, "a")
				synctest.Wait()
				meanwhile(n)
				began := time.Now()
				b.Close()
				b.Close()
				synctest.Wait()
				if n.open() != 0 {
					t.Errorf("%d connections are left", n.open())
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("it took %v", took)
				}
				if l.Live() {
					t.Error("live after Close")
				}
				late := listen(b, "b")
				time.Sleep(time.Minute)
				want(t, late, false, 0)
				late.Close()
				l.Close()
				dials := n.dialed()
				time.Sleep(time.Minute)
				if n.dialed() != dials {
					t.Error("it goes on connecting")
				}
			})
		})
	}
}

// An error reply that nobody foresaw is a reason to connect anew, and is not logged again and again.
func TestErrorRepliesAreLoggedOnce(t *testing.T) {
	virtual(t, func(t *testing.T, n *network) {
		b, log := newBus(t, n.rdb, pubsub.Auto)
		n.server.SetError("ERR busy with something else")
		l := listen(b, "a")
		time.Sleep(30 * time.Second)
		want(t, l, false, 0)
		n.server.SetError("")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !l.Live() {
			t.Error("not live again")
		}
		if said := strings.Join(log.With(""), "\n"); strings.Count(said, "busy with something else") != 1 {
			t.Errorf("logged:\n%s", said)
		}
	})
}
