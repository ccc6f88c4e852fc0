package inspect_test

import (
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/alicebob/miniredis/v2/server"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// The token of a lock that changes hands between two answers is that of the holder who is shown, whichever two answers these are.
func TestTheTokenIsTheHolders(t *testing.T) {
	const one, other = "6b1f0d1e-0000-4000-8000-000000000001", "6b1f0d1e-0000-4000-8000-000000000002"
	for _, behind := range []string{"GET", "HSCAN", "PTTL", "GET again"} {
		t.Run(behind, func(t *testing.T) {
			locktest.Virtual(t, func(t *testing.T, m *miniredis.Miniredis, rdb *redis.Client) {
				token, gets, passes := "redisson_lock_token:{l}", 0, false
				m.HSet("l", one+":1", "1")
				locktest.NoError(t, m.Set(token, "7"))
				locktest.NoError(t, rdb.Ping(t.Context()).Err()) // it serves
				in := newInspector(t, rdb)
				m.Server().SetPreHook(func(_ *server.Peer, cmd string, _ ...string) bool {
					if passes {
						passes, behind = false, ""
						m.Del("l")
						m.HSet("l", other+":1", "1")
						_ = m.Set(token, "8")
					}
					if cmd == "GET" {
						gets++
					}
					passes = behind != "" && (cmd == behind || gets == 2 && strings.HasPrefix(behind, cmd+" "))
					return false
				})
				l := look(t, in, "l")
				if l.Holder == nil || l.Token == 7 && l.Holder.Client != one || l.Token == 8 && l.Holder.Client != other || behind != "" {
					t.Errorf("token %d, holder %+v", l.Token, l.Holder)
				}
			})
		})
	}
}
