//go:build linux

package main

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// A hold that is meant to last is stuck where its client is not heard of, or where it has no lease. Nobody reads an escape in its word.
func TestLasting(t *testing.T) {
	t.Parallel()
	server := redistest.Real(t)
	rdb := server.Client()
	id := func(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }
	client := func(n int, name string) *presence.Client {
		return &presence.Client{ID: id(n), Name: name, Host: "web", PID: n, Lasts: time.Hour}
	}
	leads, gone, mail := client(1, "leads"), client(2, "gone"), client(3, "mail")
	for name, c := range map[string]struct {
		of      *presence.Client // nil: it is free
		lasting string
		wait    string // the waiter's word
		lease   time.Duration
	}{
		"led":          {leads, "leads", "leads", time.Hour},
		"waited":       {leads, "leads", "", time.Hour},
		"forged":       {leads, "\x1b[2J<b>", "\x1b[2J", time.Hour},
		"no-lease":     {leads, "leads", "leads", 0},
		"not-heard":    {gone, "leads", "leads", time.Hour},
		"nobody-leads": {nil, "", "leads", 0},
		"long":         {leads, "", "leads", time.Hour},
	} {
		if c.of != nil {
			locktest.NoError(t, rdb.HSet(ctx, name, c.of.ID+":1", 1).Err())
			c.of.Holds = append(c.of.Holds, presence.Hold{Lock: name, Field: c.of.ID + ":1", For: 5 * time.Hour, Lasting: c.lasting})
		}
		if c.lease > 0 {
			locktest.NoError(t, rdb.PExpire(ctx, name, c.lease).Err())
		}
		locktest.NoError(t, rdb.ZAdd(ctx, "fencelock_line:{"+name+"}", redis.Z{Member: mail.ID + ":1"}).Err())
		mail.Waits = append(mail.Waits, presence.Wait{Lock: name, Calls: 1, For: 3 * time.Hour, Lasting: c.wait})
	}
	for _, c := range []*presence.Client{leads, gone, mail} {
		locktest.NoError(t, presence.Write(ctx, rdb, c))
	}
	locktest.NoError(t, rdb.Persist(ctx, presence.Key(leads.ID)).Err()) // it is as if it had just been written
	locktest.NoError(t, rdb.PExpire(ctx, presence.Key(gone.ID), 59*time.Minute).Err())
	says := func(args ...string) string {
		t.Helper()
		p := start(t, server.Addr(), args...)
		out, err := io.ReadAll(p.lines)
		locktest.NoError(t, err)
		equal(t, strings.Join(args, " "), p.ends(), 0)
		if strings.Contains(string(out), "\x1b") {
			t.Errorf("%v prints an escape: %q", args, out)
		}
		return string(out)
	}
	has := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%q is not in:\n%s", part, text)
			}
		}
	}
	top := says("top", "--once")
	for name, state := range map[string]string{"led": "-", "waited": "waited", "forged": "-", "no-lease": "STUCK", "not-heard": "STUCK", "nobody-leads": "STUCK", "long": "STUCK"} {
		has(top, "\n"+state+strings.Repeat(" ", 8-len(state))+name+" ")
	}
	has(top, "stuck: 4,")
	has(says("ls", "led", "forged"), "led     web:1 leads (leads)  ", `("\x1b[2J<b>")`, "5h00m")
	has(says("show", "led"), "held, and meant to last: leads", "web:3 mail, 1 call, stands by, for 3h00m")
	has(says("ls", "led", "-o", "json"), `"lasting": "leads"`)
	says("show", "forged")
	says("show", "-o", "json", "forged")
}
