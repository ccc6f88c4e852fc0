package main

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"syscall"

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
		text = c.away(err) + plain.Meanwhile
	}
	if why := c.sentinelSays(err); why != "" {
		text = why + plain.Meanwhile
	} else if m := noRedis.FindStringSubmatch(text); m != nil {
		answer, _ := strconv.Unquote(m[1])
		text = cmp.Or(c.host(), "the server") + " is no Redis: it answers " + strings.TrimSpace(answer)
	}
	if c.mayBeWrong(err) {
		text = strings.TrimSuffix(text, plain.Meanwhile)
	}
	if refusal := plain.Refusal(err); refusal == text {
		for words, remedy := range remedies {
			if strings.Contains(refusal, words) {
				text += ": " + remedy
			}
		}
	} else if !c.given() && c.away(err) != "" {
		text += "; neither --url nor " + urlVariable + " says where Redis is"
	}
	return &saidError{text, err}
}

// remedies is what mends a refusal.
var remedies = map[string]string{
	"NOAUTH":           "give it by " + passwordVariable + ", --password-file or " + urlVariable,
	"CLUSTERDOWN":      "fencelock doctor --cluster says more",
	"NOPERM":           "fencelock doctor names the rights that the user lacks",
	"not of a cluster": "leave out --cluster",
	"no Sentinel":      "leave out --sentinel-master",
}

// noRedis is the error of an answer that is none of Redis's.
var noRedis = regexp.MustCompile(`redis: (?:can't parse .*reply|invalid reply): ("(?:[^"\\]|\\.)*")`)

// given tells whether somebody has said where Redis is.
func (c *connection) given() bool {
	return len(c.urls) > 0 || c.urlsFile != "" || os.Getenv(urlVariable) != ""
}

// mayBeWrong tells whether an error may be that of this call alone: nobody has said where Redis is, or a port for TLS may be one without.
func (c *connection) mayBeWrong(err error) bool {
	all, _ := c.addresses()
	secure := len(all) > 0 && strings.HasPrefix(all[0], "rediss:")
	return !c.given() || secure && !errors.Is(err, syscall.ECONNREFUSED)
}

// sentinelSays is why no Sentinel says where the master is; "" for another error.
func (c *connection) sentinelSays(err error) string {
	if c.sentinel == "" || !strings.Contains(err.Error(), "all sentinels specified in configuration are unreachable") || c.away(err) == "" {
		return ""
	}
	addresses, _ := c.addresses()
	u, bad := url.Parse(addresses[0])
	if bad != nil {
		return ""
	}
	return "Sentinel at " + strings.Join(append([]string{u.Host}, u.Query()["addr"]...), ", ") + " " + plain.Silence(err)
}

// explained is said, and asks the port what it speaks where that may be the reason.
func (c *connection) explained(ctx context.Context, err error) error {
	said := c.said(err)
	all, _ := c.addresses()
	if len(all) != 1 || c.away(err) == "" || errors.Is(err, syscall.ECONNREFUSED) {
		return said
	}
	if secure := strings.HasPrefix(all[0], "rediss:"); !secure && (errors.Is(err, context.DeadlineExceeded) || !c.mayBeHere(err)) {
		return said
	}
	if hint := portHint(ctx, all[0]); hint != "" {
		return &saidError{c.away(err) + hint, err}
	}
	return said
}

// mayBeHere tells whether the error may be of this machine alone.
func (c *connection) mayBeHere(err error) bool {
	return !strings.HasSuffix(plain.Error(err, c.host()), plain.Meanwhile)
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
