package rlock

import (
	"github.com/fencelock/fencelock/internal/seam"
	"github.com/fencelock/fencelock/pubsub"
)

// bus is a *pubsub.Bus as a seam.Bus.
type bus struct{ *pubsub.Bus }

func (b bus) Subscribe(channel string, wake func(message bool, text string)) seam.Subscription {
	return b.Bus.Subscribe(channel, wake)
}
