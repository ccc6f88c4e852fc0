package scripts

import (
	"context"
	_ "embed"
	"strings"
)

var (
	//go:embed readwrite.lua
	readWriteText string
	//go:embed readwrite_wait.lua
	readWriteWaitText string
	//go:embed readwrite_try.lua
	readWriteTryText string
	//go:embed readwrite_unlock.lua
	readWriteUnlockText string
	//go:embed readwrite_release.lua
	readWriteReleaseText string
	//go:embed readwrite_leave.lua
	readWriteLeaveText string
	//go:embed readwrite_renew.lua
	readWriteRenewText string
	//go:embed readwrite_inspect.lua
	readWriteInspectText string

	readWritesText   = tokenText + lineText + readWriteText
	readWriteOpsText = barrierText + readWritesText

	readWriteAcquire = alone("acquire", readWriteOpsText)
	readWriteWait    = alone("wait", readWriteOpsText+turnText+readWriteWaitText)
	readWriteTry     = alone("try", readWriteOpsText+turnText+readWriteWaitText+readWriteTryText)
	readWriteUnlock  = alone("unlock", readWriteOpsText+readWriteUnlockText)
	readWriteRelease = alone("release", readWriteOpsText+readWriteUnlockText+readWriteReleaseText)
	readWriteLeave   = alone("leave", readWriteOpsText+readWriteUnlockText+readWriteLeaveText)
	readWriteBatch   = newBatch(readWriteOpsText+turnText+readWriteWaitText+readWriteTryText+readWriteUnlockText+readWriteReleaseText+readWriteLeaveText,
		branches(&readWriteTries, &readWriteInTurn, &readWriteReleases, &readWriteAcquires, &readWriteUnlocks, &readWriteLeaves))
	readRenew        = newScript(readWritesText + readWriteRenewText + renewEachText + renewAllText)
	readWriteInspect = newScript(readWriteOpsText + readWriteUnlockText + readWriteInspectText)
)

// These kinds are about a read-write lock. The field says whether the hold reads or writes.
var (
	readWriteAcquires = newKind(ToAcquire, "acquire", &readWriteAcquire).of(readWrites)
	readWriteInTurn   = newKind(ToAcquire, "wait", &readWriteWait).of(readWrites).or(&readWriteAcquires)
	readWriteTries    = newKind(ToAcquire, "try", &readWriteTry).of(readWrites).or(&readWriteAcquires)
	readWriteUnlocks  = newKind(ToUnlock, "unlock", &readWriteUnlock).of(readWrites)
	readWriteReleases = newKind(ToUnlock, "release", &readWriteRelease).of(readWrites).or(&readWriteUnlocks)
	readWriteLeaves   = newKind(ToLeave, "leave", &readWriteLeave).of(readWrites)
)

// A Side is what a hold of a read-write lock does.
type Side byte

// The sides of a read-write lock. A lock of another kind has NoSide.
const (
	NoSide Side = 0
	Reads  Side = 'r'
	Writes Side = 'w'
)

// Mode returns "read", "write", or "" for NoSide.
func (s Side) Mode() string {
	switch s {
	case Reads:
		return "read"
	case Writes:
		return "write"
	}
	return ""
}

// ReadWriteOf returns the keys of this side of the read-write lock with this name. Both sides have one hash, one counter, one line and one channel. In the
// line a client is as two clients, one that waits to read and one that waits to write.
func ReadWriteOf(name string, side Side) *Keys {
	k := KeysOf(name)
	k.side = side
	var channel any = prefixed("redisson_rwlock", name)
	k.channel.Store(&channel)
	return k
}

// Side is the side of a read-write lock that the keys are of.
func (k *Keys) Side() Side { return k.side }

// FieldOf returns the field in Redis of the hold with this number of this client, <client>:<number>.
func (k *Keys) FieldOf(hold string) string {
	if k.side == Writes {
		return hold + ":write"
	}
	return hold
}

// InLine returns the name of this client in the line.
func (k *Keys) InLine(client string) string {
	if k.side == NoSide {
		return client
	}
	return client + string(rune(k.side))
}

// TicketOf returns the ticket of the stay in the line with this number of this client, <client>:<number>.
func (k *Keys) TicketOf(stay string) string {
	client, number, _ := strings.Cut(stay, ":")
	return k.InLine(client) + ":" + number
}

// A ReadWriteState is what InspectReadWrite has found.
type ReadWriteState struct {
	Mode   string   // "read", "write", or "" for a lock that is free
	State           // of the side that was asked for. Field is that of one of the holds
	Fields []string // of all its holds
}

// InspectReadWrite asks which holds have a read-write lock. It changes nothing. The error is go-redis's own, maybe with a sentence added.
func (s *Scripts) InspectReadWrite(ctx context.Context, keys *Keys, field string) (ReadWriteState, error) {
	type outcome struct {
		state ReadWriteState
		err   error
	}
	o, _ := hedged(ctx, s, keys.Lock, 0, func(ctx context.Context) (o outcome) {
		var reply any
		if reply, o.err = s.run(ctx, &readWriteInspect, []string{keys.Lock, keys.barrier()}, field); o.err != nil {
			o.err = explain(keys, o.err)
		} else {
			o.state, o.err = parseReadWrite(keys.side, reply)
		}
		return o
	}, func(o outcome) bool { return final(o.err) })
	return o.state, o.err
}

// parseReadWrite reads what inspect in readwrite_inspect.lua returns, for this side.
func parseReadWrite(side Side, reply any) (ReadWriteState, error) {
	list, ok := reply.([]any)
	if !ok || len(list) < 3 {
		return ReadWriteState{}, unexpected(reply)
	}
	var said ReadWriteState
	said.Mode, ok = list[0].(string)
	left, err := integer(list[1])
	count, why := integer(list[2])
	if !ok || err != nil || why != nil {
		return ReadWriteState{}, unexpected(reply)
	}
	for _, one := range list[3:] {
		field, ok := one.(string)
		if !ok {
			return ReadWriteState{}, unexpected(reply)
		}
		if strings.HasSuffix(field, ":write") == (side == Writes) { // a Redisson holder may read within its own write lock
			said.Fields = append(said.Fields, field)
		}
	}
	said.TTL = NoKey
	if len(said.Fields) > 0 && (side == Writes) == (said.Mode == "write") {
		said.State = State{Locked: true, Count: int(count), TTL: TTL(left), Field: said.Fields[0]}
	}
	return said, nil
}
