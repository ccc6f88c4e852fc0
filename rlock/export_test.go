package rlock

import "github.com/fencelock/fencelock/internal/engine"

// InLine tells how many calls of the client stand in line for the lock, and whether the first of them waits to be told.
func (c *Client) InLine(name string) (n int, idle bool) { return (*engine.Client)(c).InLine(name) }

// Untold is how many releases Redis refused to tell anybody of.
func (c *Client) Untold() int64 { return (*engine.Client)(c).Untold() }

// Books is what is on the client's books, "" for nothing but queues that linger.
func (c *Client) Books() string { return (*engine.Client)(c).Books() }

// Queues is how many locks the client knows something of.
func (c *Client) Queues() int { return (*engine.Client)(c).Queues() }
