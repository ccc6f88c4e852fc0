package engine

import (
	"errors"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/internal/room"
	"github.com/fencelock/fencelock/scripts"
)

// The errors that callers act on; package rlock shows them, and says what they mean.
var (
	ErrNotAcquired = room.ErrNotAcquired
	ErrNotHeld     = holder.ErrNotHeld
	ErrUnconfirmed = scripts.ErrUnconfirmed
	ErrLost        = holder.ErrLost
	ErrUnlocked    = holder.ErrUnlocked
	ErrClosed      = errors.New("client closed")
)

// errNoContext refuses a nil context, which would panic further in.
var errNoContext = errors.New("ctx is nil: pass the caller's, or context.Background() where there is none")

// errSameHolder is ErrNotAcquired of a call whose own holder has the lock, by another call.
var errSameHolder error = sameHolder{}

type sameHolder struct{}

func (sameHolder) Error() string { return "not acquired: held by another call of the same holder" }

func (sameHolder) Is(target error) bool { return target == ErrNotAcquired }
