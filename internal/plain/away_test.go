package plain_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/fencelock/fencelock/internal/plain"
)

// dial is the error of a dial, as package net returns it.
func dial(err error) error {
	return fmt.Errorf("inspect: Look: %w", &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 6379}, Err: err})
}

// answer is an error that Redis answers with.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func TestError(t *testing.T) {
	refused := dial(os.NewSyscallError("connect", syscall.ECONNREFUSED))
	_, proxy := (&net.Dialer{}).DialContext(t.Context(), "tcp", "127.0.0.1:1")
	const room = " (the server may have reached maxclients, or be a proxy that does not know HELLO)"
	const meanwhile = ". Nobody gets a lock meanwhile"
	for _, c := range []struct {
		err   error
		where string
		want  string
	}{
		{refused, "redis:6379", "Redis at redis:6379 does not answer: connection refused" + meanwhile},
		{refused, "", "Redis at 10.0.0.1:6379 does not answer: connection refused" + meanwhile},
		{proxy, "", "Redis at 127.0.0.1:1 does not answer: connection refused" + meanwhile},
		{&plain.At{Where: "a:1", Err: refused}, "b:1", "Redis at a:1 does not answer: connection refused" + meanwhile},
		{&plain.At{Where: "a:1", Err: &os.SyscallError{Syscall: "write", Err: syscall.EPIPE}}, "", "Redis at a:1 does not answer: the connection was closed" + room},
		{dial(syscall.ECONNRESET), "a:1", "Redis at a:1 does not answer: the connection was closed" + room},
		{dial(syscall.ENOENT), "/a.sock", "Redis at /a.sock does not answer: no such file or directory"},
		{dial(&net.AddrError{Err: "invalid port", Addr: "99999"}), "a:99999", "Redis at a:99999 does not answer: address 99999: invalid port"},
		{errors.Join(fmt.Errorf("inspect: Clients: %w", answer("NOAUTH Authentication required.")), answer("NOAUTH Authentication required.")), "", "NOAUTH: the server asks for a password"},
		{answer("NOPERM this user has no permissions to run the 'info' command."), "", "NOPERM this user has no permissions to run the 'info' command"},
		{answer("ERR max number of clients reached"), "", "the server has reached maxclients"},
		{fmt.Errorf("l: %w", answer("WRONGTYPE of a key.")), "", "l: WRONGTYPE of a key."},
		{errors.Join(errors.New("NOPERM"), fmt.Errorf("more: %w", &plain.At{Where: "a:1", Err: refused}), &plain.At{Where: "b:1", Err: io.EOF}), "",
			"Redis at a:1 does not answer: connection refused; Redis at b:1 does not answer: the connection was closed" + room + meanwhile},
		{errors.Join(&plain.At{Where: "a:1", Err: refused}, &plain.At{Where: "a:1", Err: refused}), "", "Redis at a:1 does not answer: connection refused" + meanwhile},
		{dial(syscall.EHOSTUNREACH), "a:1", "Redis at a:1 does not answer: no route to host" + meanwhile},
		{fmt.Errorf("no answer: %w", context.DeadlineExceeded), "", "Redis does not answer in time" + meanwhile},
		{dial(os.ErrDeadlineExceeded), "a:1", "Redis at a:1 does not answer in time" + meanwhile},
		{fmt.Errorf("%w: %w", plain.ErrSilent, refused), "a:1", "Redis at a:1 does not answer: connection refused" + meanwhile},
		{dial(&net.DNSError{Name: "redis.invalid", IsNotFound: true}), "redis.invalid:1", "Redis at redis.invalid:1 does not answer: there is no host redis.invalid"},
		{dial(&net.DNSError{Name: "redis.invalid", IsTimeout: true}), "a:1", "Redis at a:1 does not answer: the address of the host redis.invalid cannot be found out"},
		{&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "a:1", "Redis at a:1 does not answer: the TLS handshake failed: x509: certificate signed by unknown authority"},
		{tls.RecordHeaderError{Msg: "no TLS"}, "a:1", "Redis at a:1 does not answer: the TLS handshake failed: no TLS"},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: certificate required")}, "a:1", "Redis at a:1 does not answer: the TLS handshake failed: tls: certificate required"},
		{fmt.Errorf("%w: %w", dial(syscall.ECONNRESET), plain.Hint("use --cert")), "a:1", "Redis at a:1 does not answer: connection reset by peer: use --cert"},
		{plain.Hint("use --cert"), "a:1", "use --cert"},
		{errors.New("NOAUTH Authentication required."), "a:1", "NOAUTH Authentication required."},
		{errors.Join(errors.New("one"), errors.New("two")), "a:1", "one; two"},
		{context.Canceled, "a:1", "context canceled"},
	} {
		if got := plain.Error(c.err, c.where); got != c.want {
			t.Errorf("Error(%v):\n%s, want\n%s", c.err, got, c.want)
		}
		away, want := plain.Away(c.err, c.where), strings.TrimSuffix(c.want, meanwhile)
		if !strings.HasPrefix(want, "Redis ") {
			want = ""
		}
		if away != want {
			t.Errorf("Away(%v):\n%s, want\n%s", c.err, away, want)
		}
	}
	for err, want := range map[error]string{
		refused:              "does not answer: connection refused",
		plain.ErrSilent:      "does not answer in time",
		answer("NOAUTH no."): "answers: NOAUTH: the server asks for a password",
	} {
		if got := plain.Silence(err); got != want {
			t.Errorf("Silence: %s, want %s", got, want)
		}
	}
	for _, c := range []struct {
		count, servers int
		want           string
	}{{0, 0, ""}, {3, 5, ""}, {2, 5, "Nobody gets a lock: 2 of 5 servers answer and count, 3 are needed"}, {2, 4, "Nobody gets a lock: 2 of 4 servers answer and count, 3 are needed"}} {
		if got := plain.Nobody(c.count, c.servers); got != c.want {
			t.Errorf("Nobody: %s, want %s", got, c.want)
		}
	}
	if got := plain.Reason(refused); got != "connection refused" {
		t.Errorf("Reason: %s", got)
	}
	if err := error(&plain.At{Where: "a:1", Err: refused}); !errors.Is(err, syscall.ECONNREFUSED) || err.Error() != refused.Error() {
		t.Errorf("the error itself: %v", err)
	}
}
