//go:build unix

package main

import (
	"context"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/limits"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// limited is the address of a server that has the limits.
func limited(t *testing.T, p limits.Profile) string {
	t.Helper()
	addr := redistest.Real(t).Addr()
	s := limits.New(p, func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", addr)
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := s.Dial(context.Background(), "", "")
			if err != nil {
				return
			}
			for _, ends := range [][2]net.Conn{{client, server}, {server, client}} {
				go func() {
					_, _ = io.Copy(ends[0], ends[1])
					_ = ends[0].Close()
				}()
			}
		}
	}()
	return listener.Addr().String()
}

// What doctor finds wrong, or warns of, where an engine refuses something; in each line the words stand that are to be there. Of other engines nothing.
var ailments = map[string][]string{
	"Garnet":                  {"wrong commands Lua scripting support disabled", "wrong lock --lua-transaction-mode"},
	"Garnet with --no-pubsub": {"warning commands PUBLISH SUBSCRIBE, for messages", "warning commands PUBLISH SUBSCRIBE, for the line"},
	"OCI Cache, sharded":      {"wrong commands EVAL EVALSHA, for locks", "wrong lock knows EVALSHA and EVAL"},
	"Envoy": {
		"warning commands SUBSCRIBE UNSUBSCRIBE, for messages", "warning commands SUBSCRIBE UNSUBSCRIBE, for the line", "warning commands PUBSUB, for ls",
	},
	"Envoy before 2026": {
		"warning INFO does not know the command", "warning commands SUBSCRIBE UNSUBSCRIBE, for messages", "warning commands SUBSCRIBE UNSUBSCRIBE, for the line",
		"warning commands PUBSUB, for ls",
	},
	"twemproxy":         {"wrong connection a proxy that does not know HELLO"},
	"nobody is counted": {"warning handoff PUBLISH in a script does not count"},
}

// Doctor says what an engine refuses, and wrong only where locks do not work.
func TestDoctorOnEngines(t *testing.T) {
	t.Setenv(passwordVariable, "")
	t.Setenv(urlVariable, "")
	for _, p := range append(limits.Profiles, limits.Profile{Name: "nobody is counted", Limits: []limits.Limit{{Does: limits.CountsNobody}}}) {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			at := connection{urls: []string{"redis://" + limited(t, p)}}
			v, err := at.view()
			locktest.NoError(t, err)
			defer v.close()
			d := &doctor{viewer: v}
			kinds, err := kindsOf(nil)
			locktest.NoError(t, err)
			d.examine(t.Context(), &at, kinds, nil)
			found := slices.DeleteFunc(d.findings, func(f finding) bool { return f.Result == fine || f.Check == "persistence" })
			want := ailments[p.Name]
			same := len(found) == len(want)
			for i := 0; same && i < len(want); i++ {
				begin, words := found[i].Result+" "+found[i].Check+" ", ""
				words, same = strings.CutPrefix(want[i], begin)
				same = same && strings.Contains(found[i].Text, words)
			}
			if !same {
				t.Errorf("%+v, want %q", found, want)
			}
		})
	}
}

// What a server does not tell is no fault: hosted ones leave out whole sections of INFO.
func TestDoctorOfAServerThatTellsLittle(t *testing.T) {
	d := &doctor{info: map[string]string{"redis_version": "7.2.0"}}
	if !d.examineRole(&connection{}) {
		t.Error("it is taken for a replica")
	}
	d.examinePersistence(t.Context())
	d.examineMemory()
	for _, f := range d.findings {
		if f.Result != warning || !strings.Contains(f.Text, "does not tell") {
			t.Errorf("%+v", f)
		}
	}
}
