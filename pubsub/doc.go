// Package pubsub wakes the waiters of a channel: one connection per client (in a cluster with sharded channels, one per
// node that has any), shared by all subscriptions. It knows nothing of locks.
//
// # What a wake-up means
//
// Something may have changed: look. A wake-up comes with every message, whatever it says; with every confirmation of the
// subscription, the first one and each one after a reconnect, because messages may have been lost before it; and when the
// connection is lost, because from then on none will come. Wake-ups may coalesce. To miss nothing: subscribe, wait for a
// wake-up, look; and look again at each further one. While Live is false, poll.
//
// # When the connection is not there
//
// It is pinged when nothing was heard for three seconds, and replaced when three more pass in silence, or when it
// breaks; meanwhile Live is false. Attempts to connect are spaced out up to a second. A user who may not subscribe
// (NOPERM) never becomes live, which is logged once.
//
// A channel is given up a second after its last subscription was closed, and the connection with its last channel: a
// lock that is contended again and again does not subscribe anew each time, and nothing is left behind.
package pubsub
