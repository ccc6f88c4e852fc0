package holder

import "context"

// A link ends a signal with a context that may lead to the holder. Only that context keeps it alive.
type link struct{ stop func() bool }

// linkKey is the key by which the context package asks a context for its own value: what leads from a context to what ends it, with
// which a derived context registers. The key is what context.Cause asks for.
var linkKey = func() (key any) {
	_ = context.Cause(keyContext{context.Background(), &key})
	return key
}()

// keyContext is an ended context that notes the key of the value that it is asked for.
type keyContext struct {
	context.Context
	key *any
}

func (keyContext) Err() error { return context.Canceled }

func (c keyContext) Value(key any) any {
	*c.key = key
	return nil
}

// linkOnly has nothing of a context but its end: of the values only the context package's own.
type linkOnly struct{ context.Context }

func (c linkOnly) Value(key any) any {
	if key == linkKey {
		return c.Context.Value(key)
	}
	return nil
}
