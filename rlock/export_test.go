package rlock

import "github.com/fencelock/fencelock/internal/engine"

// InQueue tells how many calls of the client are in the queue for the lock, and whether the first of them waits to be told.
func (c *Client) InQueue(name string) (n int, idle bool) { return (*engine.Client)(c).InQueue(name) }

// Unpublished is how many releases Redis refused to tell anybody of.
func (c *Client) Unpublished() int64 { return (*engine.Client)(c).Unpublished() }

// Books is what is on the client's books, "" for nothing but lock states that linger.
func (c *Client) Books() string { return (*engine.Client)(c).Books() }

// LockStates is how many locks the client knows something of.
func (c *Client) LockStates() int { return (*engine.Client)(c).LockStates() }
