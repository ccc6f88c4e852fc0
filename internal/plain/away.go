package plain

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
)

// ErrSilent is the error of a server that has not answered in time.
var ErrSilent = errors.New("no answer in time")

// At is an error of one server. Its text is that of Err.
type At struct {
	Where string // the server's address
	Err   error
}

func (e *At) Error() string { return e.Err.Error() }
func (e *At) Unwrap() error { return e.Err }

// Hint is an error beside one of the network: what mends that here. Others may reach the server all the same.
type Hint string

func (h Hint) Error() string { return string(h) }

// Error is an error for people on call: where servers do not answer, which ones, why, and what that means; otherwise as Reason. where is the
// address of a server that err does not name, or "".
func Error(err error, where string) string {
	text, others := away(err, where)
	switch {
	case text == "":
		return Reason(err)
	case others:
		return text
	}
	return text + ". Nobody gets a lock meanwhile"
}

// Away says which servers do not answer, and why; "" where err says of none that it does not. where is as for Error.
func Away(err error, where string) string {
	text, _ := away(err, where)
	return text
}

// Reason is why a server does not answer, in a few words, or the text of another error. It is one line.
func Reason(err error) string {
	if text, _ := cause(err); text != "" {
		return text
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// Silence is what a server does where err is why it does not answer, without a subject; otherwise it is Reason.
func Silence(err error) string {
	switch text, _ := cause(err); text {
	case "":
		return Reason(err)
	case ErrSilent.Error():
		return "does not answer in time"
	default:
		return "does not answer: " + text
	}
}

// Nobody is what it means that so few of a quorum's servers answer and count; "" where these are a majority, or there is no quorum.
func Nobody(count, servers int) string {
	need := servers/2 + 1
	if servers == 0 || count >= need {
		return ""
	}
	return fmt.Sprintf("Nobody gets a lock: %d of %d servers answer and count, %d are needed", count, servers, need)
}

// away is Away. others tells that others may reach the servers all the same.
func away(err error, where string) (text string, others bool) {
	all := serversOf(err)
	if len(all) == 0 {
		all = []*At{{addressIn(err, where), err}}
	}
	var said []string
	others = true
	for _, one := range all {
		why, here := cause(one.Err)
		if why == "" {
			continue
		}
		others = others && here
		text := "Redis "
		if one.Where != "" {
			text += "at " + one.Where + " "
		}
		text += Silence(one.Err)
		if !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return strings.Join(said, "; "), others
}

// serversOf are the errors of servers that err is made of.
func serversOf(err error) (all []*At) {
	switch e := err.(type) {
	case *At:
		return []*At{e}
	case interface{ Unwrap() error }:
		return serversOf(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, serversOf(one)...)
		}
	}
	return all
}

// addressIn is where, or the address that err was to be reached at.
func addressIn(err error, where string) string {
	if op := new(net.OpError); where == "" && errors.As(err, &op) && op.Addr != nil {
		return op.Addr.String()
	}
	return where
}

// cause is why there is no answer, in a few words, and the hint; "" for another error, such as a refusal of the server's. here tells that
// this is so here: the host's name is not known, or one does not trust the other.
func cause(err error) (text string, here bool) {
	var hint Hint
	if text, here = broken(err); text != "" && errors.As(err, &hint) {
		return text + ": " + string(hint), true
	}
	return text, here
}

// broken is cause without the hint.
func broken(err error) (text string, here bool) {
	const handshake = "the TLS handshake failed: "
	var (
		network     *net.OpError
		timeout     net.Error
		number      syscall.Errno
		host        *net.DNSError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
	)
	switch {
	case err == nil:
		return "", false
	case errors.As(err, &host) && host.IsNotFound:
		return "there is no host " + Name(host.Name), true
	case errors.As(err, &host):
		return "the address of the host " + Name(host.Name) + " cannot be found out", true
	case errors.As(err, &certificate):
		return handshake + certificate.Err.Error(), true
	case errors.As(err, &record):
		return handshake + record.Msg, true
	case errors.As(err, &network) && network.Op == "remote error": // an alert of TLS
		return handshake + network.Err.Error(), true
	case errors.As(err, &network) && errors.As(network, &number):
		return number.Error(), false
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return "the connection was closed", false
	case errors.Is(err, ErrSilent), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return ErrSilent.Error(), false
	case network != nil:
		return network.Err.Error(), false
	}
	return "", false
}
