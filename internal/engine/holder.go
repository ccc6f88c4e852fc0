package engine

import (
	"context"
	"slices"
	"sync"
)

// A holder is who has locks: what a thread is in Java. Contexts carry it. It owns its holds, and nothing that lives
// longer points to it but weakly, so that a holder whose contexts were all dropped is garbage, and is noticed.
type holder struct {
	base context.Context // what it was made from; does not lead to the holder

	mu        sync.Mutex
	holds     []*hold  // open ones, and those that are over but not unlocked
	holdStore [1]*hold // for holds, of most holders
}

type holderKey struct{}

// TokenKey is the context key of the current token of the lock with this name. Its value is a func() (int64, bool).
type TokenKey string

// holderOf returns the holder that ctx carries, or nil.
func holderOf(ctx context.Context) *holder {
	h, _ := ctx.Value(holderKey{}).(*holder)
	return h
}

// NewHolder is rlock.NewHolder.
func NewHolder(ctx context.Context) context.Context {
	base := ctx
	if held := contextOf(ctx); held != nil {
		if base = held.base; ctx.Done() == nil {
			base = context.WithoutCancel(base)
		}
	}
	return &holderContext{Context: base, values: ctx, holder: &holder{base: base}}
}

// holderContext is what NewHolder returns: base's end and the values of where it was made.
type holderContext struct {
	context.Context
	values context.Context
	holder *holder
}

func (c *holderContext) Value(key any) any {
	switch key := key.(type) {
	case holderKey:
		return c.holder
	case contextKey:
		return nil
	case TokenKey:
		return c.holder.token(string(key))
	}
	if key == linkKey {
		return c.Context.Value(key) // it ends with base
	}
	return c.values.Value(key) // which has those of base
}

func (c *holderContext) String() string { return "rlock.NewHolder" }

// find returns the holder's hold of the lock, open or not unlocked yet, or nil.
func (h *holder) find(c *Client, name string) *hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, hold := range h.holds {
		if hold.client == c && hold.attempts.Keys.Lock == name {
			return hold
		}
	}
	return nil
}

// token returns the current token of the holder's hold of the lock, as a value of TokenKey, or nil.
func (h *holder) token(name string) any {
	h.mu.Lock()
	holds := slices.Clone(h.holds)
	h.mu.Unlock()
	for _, hold := range holds {
		if hold.attempts.Keys.Lock == name && hold.fenced() {
			return hold.currentToken
		}
	}
	return nil
}

// holdsAny tells whether the holder has an open hold of this client.
func (h *holder) holdsAny(c *Client) bool {
	h.mu.Lock()
	holds := slices.Clone(h.holds)
	h.mu.Unlock()
	return slices.ContainsFunc(holds, func(hold *hold) bool { return hold.client == c && hold.err() == nil })
}

func (h *holder) add(hold *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.holds == nil {
		h.holds = h.holdStore[:0]
	}
	h.holds = append(h.holds, hold)
}

func (h *holder) remove(hold *hold) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.Index(h.holds, hold); i >= 0 {
		h.holds = slices.Delete(h.holds, i, i+1)
	}
}
