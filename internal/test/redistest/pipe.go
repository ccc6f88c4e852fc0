package redistest

import (
	"sync"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/test/memredis"
)

// Pipe returns a fresh miniredis and a client of it that talk over in-memory
// pipes, for use in a testing/synctest bubble: keys expire by the bubble's
// clock. Call it in the bubble with the bubble's t, whose Cleanup closes both.
func Pipe(t testing.TB) (*miniredis.Miniredis, *redis.Client) {
	s := memredis.New()
	pipes.Store(s.Miniredis, s)
	t.Cleanup(func() {
		s.Close()
		pipes.Delete(s.Miniredis)
	})
	return s.Miniredis, PipeClient(t, s.Miniredis)
}

// PipeClient returns one more client of a miniredis made by [Pipe], in the same
// bubble. It is closed when the test ends.
func PipeClient(t testing.TB, m *miniredis.Miniredis, opts ...func(*redis.Options)) *redis.Client {
	return client(t, pipeOptions(t, m), opts)
}

// GatedClient is [PipeClient] for a client whose connections pass the gate. While
// the gate is shut the client sees what it would of a server that stands still.
// The gate is open when the test ends.
func GatedClient(t testing.TB, m *miniredis.Miniredis, gate *memredis.Gate, opts ...func(*redis.Options)) *redis.Client {
	t.Cleanup(gate.Open)
	return client(t, pipeOptions(t, m, gate), opts)
}

func pipeOptions(t testing.TB, m *miniredis.Miniredis, gates ...*memredis.Gate) *redis.Options {
	s, ok := pipes.Load(m)
	if !ok {
		t.Fatal("redistest: the miniredis is not one of Pipe, or its test is over")
	}
	return s.(*memredis.Server).Options(gates...)
}

// pipes has the server of each miniredis of [Pipe] whose test runs.
var pipes sync.Map
