package main

import (
	"cmp"
	"errors"
	"net"
	"net/url"
	"strings"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/quorum"
)

// saidError is an error with the text that people read.
type saidError struct {
	text string
	error
}

func (e *saidError) Error() string { return e.text }
func (e *saidError) Unwrap() error { return e.error }

// away says which servers do not answer, and why; "" where err says of none that it does not.
func (c *connection) away(err error) string {
	var few *quorum.MajorityError
	if !errors.As(err, &few) {
		return plain.Away(err, c.host())
	}
	text, some := few.Error(), false
	for _, f := range few.Failed {
		why := plain.Away(f.Err, f.Node)
		some = some || why != ""
		text = strings.Replace(text, f.Error(), cmp.Or(why, "Redis at "+f.Node+": "+plain.Reason(f.Err)), 1)
	}
	if !some {
		return ""
	}
	return text
}

// said is err with what people read.
func (c *connection) said(err error) error {
	text := plain.Error(err, c.host())
	if errors.Is(err, quorum.ErrNoMajority) && c.away(err) != "" {
		text = c.away(err) + ". Nobody gets a lock meanwhile"
	}
	return &saidError{text, err}
}

// host is where the one Redis is, or its Sentinel, or the first node of its cluster; "" for a quorum.
func (c *connection) host() string {
	all, _ := c.addresses()
	if len(all) != 1 {
		return ""
	}
	u, err := url.Parse(all[0])
	switch {
	case err != nil:
		return ""
	case u.Scheme == "unix":
		return u.Path
	}
	return net.JoinHostPort(cmp.Or(u.Hostname(), "127.0.0.1"), cmp.Or(u.Port(), "6379"))
}
