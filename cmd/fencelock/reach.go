package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/engine"
)

// pingTime bounds the wait for the first answer: go-redis dials five times, and a port of the wrong kind may keep it waiting each time.
const pingTime = 2 * dialTimeout

// ping returns why the server does not answer, and what mends that, or nil where it does, also with a refusal of PING.
func (d *doctor) ping(ctx context.Context, address string) (hint string, err error) {
	within := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		_, err := engine.Within(ctx, func() (string, error) { return d.rdb.Ping(ctx).Result() })
		return err
	}
	err = within(probeTime)
	hint = connectHint(ctx, address, err)
	if errors.Is(err, context.DeadlineExceeded) && hint == "" {
		err = within(pingTime)
		hint = connectHint(ctx, address, err)
	}
	if err == nil || redis.HasErrorPrefix(err, "NOPERM") && strings.Contains(err.Error(), "'ping'") {
		return "", nil
	}
	return hint, err
}

// connectHint says what mends an error of a connection: a right, where that has a database other than 0, a name, or is one to a cluster; or
// another form of the URL; or the slots of a cluster.
func connectHint(ctx context.Context, address string, err error) string {
	if err == nil {
		return ""
	}
	if redis.HasErrorPrefix(err, "NOPERM") {
		for command, word := range map[string]string{"'select": "+select", "'client": "+client|setname", "'cluster": "+cluster|slots"} {
			if strings.Contains(err.Error(), command) {
				return ": the user lacks " + word
			}
		}
	}
	switch text := err.Error(); {
	case strings.Contains(text, "cluster has no nodes"), redis.HasErrorPrefix(err, "CLUSTERDOWN"):
		return ": " + noSlots
	case strings.Contains(text, "cluster support disabled"):
		return ": the server is not of a cluster: leave out --cluster"
	}
	var refusal redis.Error
	if errors.As(err, &refusal) { // there is an answer
		return ""
	}
	return portHint(ctx, address)
}

const noSlots = "no node of this cluster has a slot: redis-cli --cluster create makes a cluster of nodes, CLUSTER ADDSLOTSRANGE gives slots to one"

// portHint says that the port speaks TLS where the URL asks for none, or the other way round; "" for neither.
func portHint(ctx context.Context, address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme == "unix" {
		return ""
	}
	address = net.JoinHostPort(cmp.Or(u.Hostname(), "127.0.0.1"), cmp.Or(u.Port(), "6379"))
	switch secure := u.Scheme == "rediss"; {
	case secure && speaksPlain(ctx, address):
		return ": that port speaks no TLS: use redis://"
	case !secure && speaksTLS(ctx, address):
		return ": that port speaks TLS: use rediss://"
	}
	return ""
}

// probeTime bounds a look at what a port speaks.
const probeTime = 2 * time.Second

// speaksPlain tells whether a server answers there as Redis does without TLS.
func speaksPlain(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{Timeout: probeTime}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(probeTime))
	if _, err := conn.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	answer := make([]byte, 1)
	_, err = conn.Read(answer)
	return err == nil && bytes.ContainsAny(answer, "+-")
}

// speaksTLS tells whether a server answers there with TLS, of whatever certificate. It is sent nothing.
func speaksTLS(ctx context.Context, address string) bool {
	conn, err := (&net.Dialer{Timeout: probeTime}).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(probeTime))
	err = tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(ctx) // nothing is sent, and nothing believed
	var alert tls.AlertError
	return err == nil || errors.As(err, &alert)
}
