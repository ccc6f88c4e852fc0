// Package pubsub subscribes to channels of Redis, and wakes the subscribers. All subscriptions of a client share one
// connection; in a cluster with sharded channels they share one for each node that has any of the channels. The package
// knows nothing of locks. Its exported names are for the other packages of this module: they are not promised, and may change
// in any version.
//
// # What a wake-up means
//
// A wake-up says that something may have changed, and that the subscriber is to look. A wake-up comes with every message,
// whatever the message says; with every confirmation of the subscription, the first one and each one after a reconnect,
// because messages may have been lost before; and when the connection is lost, because from then on no message will come. A
// subscriber may take several wake-ups for one. To miss nothing a subscriber subscribes, waits for a wake-up and looks, and
// looks again at each further wake-up. While Live is false the subscriber polls.
//
// # When the connection is not there
//
// The bus pings a connection from which nothing was heard for three seconds, and replaces the connection when three more
// pass in silence, or when it breaks. Live is false from then until the new connection is confirmed. Attempts to connect are
// spaced out, up to a second. The subscriptions of a Redis user who may not subscribe (NOPERM), and those behind a proxy that does
// not know the command, do not become live, which is logged once. The bus tries them again after a second, and then ever more rarely,
// down to each half minute: the user may be given the right.
//
// The bus unsubscribes from a channel a second after the last subscription to the channel was closed, and closes the
// connection with its last channel. So a channel that is wanted again and again is not subscribed to anew each time, and
// nothing is left.
package pubsub
