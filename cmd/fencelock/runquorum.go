package main

import (
	"cmp"
	"io"
	"time"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/quorum"
	"github.com/fencelock/fencelock/rlock"
)

// newClient makes the job's lock, on one Redis or on the servers of a quorum, and returns the client to close.
func (j *job) newClient(opts ...rlock.Option) (io.Closer, error) {
	if len(j.servers) == 1 {
		client, err := rlock.New(j.servers[0], opts...)
		if err == nil {
			j.client, j.lock = client, fenced.NewLock(client, j.name)
		}
		return client, err
	}
	if j.permits > 0 {
		return nil, usage("--permits: a quorum has no semaphores: give one URL")
	}
	longest := time.Duration(cmp.Or(j.at.maxLease, duration(defaultLease)))
	if lease := time.Duration(j.lease); lease > longest {
		return nil, usage("--lease %v: the longest lease of this quorum is %v. If that is not so, say it with --max-lease: all clients of a quorum must have the same", lease, longest)
	}
	client, err := quorum.New(j.servers, append(opts, quorum.WithMaxLease(longest))...)
	if err == nil {
		j.lock = fenced.NewLock(client, j.name)
	}
	return client, err
}
