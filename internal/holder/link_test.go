package holder

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/fencelock/fencelock/internal/test/locktest"
)

// probe is a context whose AfterFunc package context calls where it does not find, by its own key,
// what ends the context.
type probe struct {
	context.Context
	asked *bool
}

func (p probe) AfterFunc(func()) (stop func() bool) {
	*p.asked = true
	return func() bool { return true }
}

// What link.go takes of the inside of package context: by the key that Cause asks for a context
// leads to what ends it. Otherwise each context that a user derives from a lock's has a goroutine,
// and Cause is lost.
func TestInsideOfPackageContext(t *testing.T) {
	type key struct{}
	reason := errors.New("the user's reason")
	user, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "the user's"))
	_, held := begin(user, "l")
	own, cancelOwn := context.WithCancel(held)
	defer cancelOwn()
	_, linked := begin(own, "linked")
	_, nested := begin(held, "nested")
	const between = "that of a hold under a context between"
	contexts := map[string]context.Context{
		"a hold's context": held, "that of a hold nested in it": nested, between: linked,
		"a signal's parent": linkOnly{user}, "NewHolder's": NewHolder(held),
	}
	const changed = "package context of %s has changed inside: %s. See internal/holder/link.go"
	for name, ctx := range contexts {
		asked := false
		_, cancelDerived := context.WithCancel(probe{ctx, &asked})
		cancelDerived()
		if asked {
			t.Errorf(changed, runtime.Version(), "it does not find what ends "+name+" by the key that Cause has asked for")
		}
	}
	locktest.Equal(t, "the user's value, of a signal's parent", linkOnly{user}.Value(key{}), nil)
	cancel(reason)
	<-contexts[between].Done()
	for name, ctx := range contexts {
		if cause := context.Cause(ctx); cause != reason {
			t.Errorf(changed, runtime.Version(), fmt.Sprintf("Cause of %s is %v", name, cause))
		}
	}
}
