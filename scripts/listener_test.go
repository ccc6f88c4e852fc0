package scripts

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// listener is somebody else who listens for the releases of a lock, or has gone away.
type listener struct {
	*redis.PubSub
	channel string
}

func newListener(rdb redis.UniversalClient, keys *Keys) *listener {
	return &listener{rdb.Subscribe(context.Background()), keys.Channel()}
}

// listen begins to listen, or ends it, and returns when Redis knows of it.
func (l *listener) listen(ctx context.Context, begin bool) error {
	change := l.Unsubscribe
	if begin {
		change = l.Subscribe
	}
	if err := change(ctx, l.channel); err != nil {
		return err
	}
	for {
		said, err := l.ReceiveTimeout(ctx, 20*time.Second)
		if _, known := said.(*redis.Subscription); err != nil || known {
			return err
		}
	}
}
