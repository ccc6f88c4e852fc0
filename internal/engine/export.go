package engine

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync/atomic"

	"github.com/fencelock/fencelock/internal/holder"
	"github.com/fencelock/fencelock/scripts"
)

// ErrImported is ErrUnlocked of a hold that somebody has imported.
var ErrImported = holder.ErrImported

// An export is what a hold knows that was exported.
type export struct {
	held     Held        // keeps the holder from becoming garbage: the hold is renewed until it is imported
	message  string      // that tells of the import
	imported atomic.Bool // this was told
}

// An Exported is what the text of a hold says.
type Exported struct {
	Kind   string // of the hold, see below
	Fenced bool   // it has a token
	Field  string
	Lock   string // the name; of a permit that of its slot
}

// The kinds of hold that are exported.
const (
	ofLock   = "lock"
	ofPermit = "permit"
	ofWriter = "write"
)

// exportKind is the kind of what the lock gives.
func (l *Lock) exportKind() string {
	switch {
	case l.slot != noSlot || l.keys.Permits() > 0:
		return ofPermit
	case l.keys.Side() == scripts.Writes:
		return ofWriter
	}
	return ofLock
}

// Export returns the hold's text, by which it can be imported. The hold goes on until that happens.
func (h *Held) Export() (string, error) {
	if !h.isMade() {
		return "", errUnmade
	}
	in := holdOfLevel(h.level)
	if h.level.OtherSide {
		return "", errReads
	}
	if err := in.lock.movable(); err != nil {
		return "", err
	}
	if err := h.level.Err(); err != nil {
		return "", err
	}
	one := &export{held: *h, message: scripts.ImportMessage(in.attempts.Field)}
	first := in.exported.CompareAndSwap(nil, one)
	if err := h.level.Err(); err != nil { // after that: it is not passed on locally from now on
		if first {
			in.exported.CompareAndSwap(one, nil)
		}
		return "", err
	}
	in.lockState.followHold(in)
	return Exported{in.lock.exportKind(), in.lock.options.Fenced, in.attempts.Field, in.lock.id.Name}.text(), nil
}

var errReads = errors.New("a hold that reads cannot be exported or imported: any number of them may be there at once, so take another one")

// movable is why no hold of the lock can be exported or imported; nil if it can.
func (l *Lock) movable() error {
	switch {
	case l.client.limits.several():
		return errors.New("a hold of a quorum cannot be exported or imported: use one Redis, Sentinel or a cluster")
	case l.kind.together():
		return errReads
	}
	return nil
}

// Import takes over the hold that was exported as this text, for a new holder. ctx bounds the call alone.
func (l *Lock) Import(ctx context.Context, exported string, r Request) (Held, error) {
	if err := l.checkMade(); err != nil {
		return Held{}, err
	}
	if ctx == nil {
		return Held{}, errNoContext
	}
	if err := l.movable(); err != nil {
		return Held{}, err
	}
	from, err := ParseExported(exported)
	if err != nil {
		return Held{}, err
	}
	keys, slot := l.keys, noSlot
	if n := l.keys.Permits(); n > 0 {
		for slot = n - 1; slot >= 0 && l.keys.SlotName(slot) != from.Lock; slot-- {
		}
		keys = scripts.KeysOf(from.Lock)
	}
	switch {
	case from.Kind != l.exportKind() || from.Lock != keys.Lock || keys != l.keys && slot < 0:
		return Held{}, fmt.Errorf("the text is that of another hold, of kind %q, of %q", from.Kind, from.Lock)
	case from.Fenced && !l.options.Fenced:
		return Held{}, errors.New("the hold has a token: import it with a lock of package fenced, whose next token keeps the old holder's writes from counting")
	case r.Reenter:
		return Held{}, errors.New("option Reenter: an imported hold is a new holder's, leave the option out")
	case !r.Forever:
		return Held{}, errors.New("option Wait: Import waits for nobody, leave the option out")
	}
	r.imports = &importing{from.Field, keys, slot}
	return l.hold(ctx, holder.NewHolder(context.WithoutCancel(ctx)), r)
}

// An importing is what an import takes over.
type importing struct {
	field string
	keys  *scripts.Keys // where the field is
	slot  int           // of a permit
}

// errNotThere is why an import has found nothing to take over.
var errNotThere = fmt.Errorf("%w any more: the exported hold was unlocked, imported, forced open, or its lease ran out", ErrNotHeld)

const exportPrefix = "fencelock1."

// text is what Export returns: the prefix, and in base64 what the fields say, with a checksum behind. No kind and no field has a space.
func (e Exported) text() string {
	fenced := "-"
	if e.Fenced {
		fenced = "fenced"
	}
	return seal(strings.Join([]string{e.Kind, fenced, e.Field, e.Lock}, " "))
}

func seal(text string) string {
	return exportPrefix + base64.RawURLEncoding.EncodeToString(binary.BigEndian.AppendUint32([]byte(text), crc32.ChecksumIEEE([]byte(text))))
}

// ParseExported reads what Export has returned.
func ParseExported(text string) (e Exported, err error) {
	rest, is := strings.CutPrefix(strings.TrimSpace(text), exportPrefix)
	all, failed := base64.RawURLEncoding.DecodeString(rest)
	if !is || failed != nil || len(all) < 4 || seal(string(all[:len(all)-4])) != exportPrefix+rest {
		return e, fmt.Errorf("the text is not one that Export has returned, or not all of it: such a text begins with %q", exportPrefix)
	}
	parts := strings.SplitN(string(all[:len(all)-4]), " ", 4)
	if len(parts) == 4 {
		e = Exported{parts[0], parts[1] == "fenced", parts[2], parts[3]}
	}
	if e.Keys() == nil {
		return Exported{}, errors.New("the text was exported by another version of the library")
	}
	return e, nil
}

// Keys returns the keys by which the hold is renewed and released; nil for none that this version knows.
func (e Exported) Keys() *scripts.Keys {
	switch of, slot, is := scripts.SlotOf(e.Lock); {
	case e.Kind == ofLock:
		return scripts.KeysOf(e.Lock)
	case e.Kind == ofWriter:
		return scripts.ReadWriteOf(e.Lock, scripts.Writes)
	case e.Kind == ofPermit && is:
		return scripts.PermitsOf(of, slot+1).PermitIn(slot)
	}
	return nil
}

// heardImport notes, where the message tells that the hold was imported, that it was.
func (h *hold) heardImport(message string) bool {
	e := h.exported.Load()
	if e == nil || e.message != message {
		return false
	}
	e.imported.Store(true)
	return true
}

// heardImportBy is heardImport of a call of this client, which has the lock now.
func (h *hold) heardImportBy(w *waiter) bool {
	from := w.request.imports
	return from != nil && from.field == h.attempts.Field && h.heardImport(scripts.ImportMessage(from.field))
}

// importedOwn ends the hold that the call has imported, where that is one of this client.
func (c *Client) importedOwn(w *waiter) {
	c.mu.Lock()
	old := c.firstHold
	for old != nil && old.attempts.Field != w.request.imports.field {
		old = old.next
	}
	c.mu.Unlock()
	if old != nil && old.heardImportBy(w) {
		old.lose(takenText, true)
	}
}

// mayBeImported is added to how a hold was lost that was exported.
func (h *hold) mayBeImported(how string) string {
	if h.exported.Load() == nil {
		return how
	}
	return how + "; it was exported, and may have been imported"
}

// wasImported tells whether the hold is known to have been imported.
func (h *hold) wasImported() bool {
	e := h.exported.Load()
	return e != nil && e.imported.Load()
}
