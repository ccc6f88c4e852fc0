package plain

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
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
		return cmp.Or(Refusal(err), Reason(err))
	case others:
		return text
	}
	return text + Meanwhile
}

// Meanwhile is what a silence means that is not only here.
const Meanwhile = ". Nobody gets a lock meanwhile"

// refusals is what Redis means by the first words of an answer, or by a part of it.
var refusals = []struct{ words, meaning string }{
	{"NOAUTH", "NOAUTH: the server asks for a password"},
	{"WRONGPASS", "WRONGPASS: the password or the user is wrong, or the user is disabled"},
	{"MASTERDOWN", "MASTERDOWN: the server is a replica that does not reach its master: name the master"},
	{"CLUSTERDOWN", "CLUSTERDOWN: the cluster is down, or has no node for a slot"},
	{"NOPERM", ""},
	{"ERR max number of clients reached", "the server has reached maxclients"},
	{"ERR This instance has cluster support disabled", "the server is not of a cluster"},
	{"ERR unknown command 'sentinel'", "the server is no Sentinel"},
	{"ERR unknown command `sentinel`", "the server is no Sentinel"},
}

// Refusal is what a server says, in a few words, that does not let this user or client in; "" for another error.
func Refusal(err error) string {
	var said []string
	for _, one := range answersIn(err) {
		text := strings.TrimRight(one.Error(), ". ")
		for _, r := range refusals {
			if strings.HasPrefix(text, r.words) {
				if text = cmp.Or(r.meaning, text); !slices.Contains(said, text) {
					said = append(said, text)
				}
			}
		}
	}
	return strings.Join(said, "; ")
}

// answersIn are the errors that Redis has answered with, as go-redis marks them.
func answersIn(err error) (all []error) {
	switch e := err.(type) {
	case interface{ RedisError() }:
		return []error{err}
	case interface{ Unwrap() error }:
		return answersIn(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, one := range e.Unwrap() {
			all = append(all, answersIn(one)...)
		}
	}
	return all
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

// Silence is what a server does where err is why it does not answer, or what it answers with, without a subject.
func Silence(err error) string {
	switch text, _ := cause(err); text {
	case "":
		return "answers: " + strings.TrimRight(cmp.Or(Refusal(err), Reason(err)), ".")
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
// this may be so here alone: the address is wrong, one does not trust the other, or the server has no room for another connection.
func cause(err error) (text string, here bool) {
	var hint Hint
	if text, here = broken(err); text != "" && errors.As(err, &hint) {
		return text + ": " + string(hint), true
	}
	if text == closed {
		text += " (the server may have reached maxclients, or be a proxy that does not know HELLO)"
	}
	return text, here
}

const closed = "the connection was closed"

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
		call        *os.SyscallError
		address     *net.AddrError
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
	case (errors.As(err, &network) || errors.As(err, &call)) && errors.As(err, &number):
		if number == syscall.EPIPE || number == syscall.ECONNRESET && !errors.As(err, new(Hint)) {
			return closed, true
		}
		return number.Error(), number == syscall.ENOENT || number == syscall.EACCES // of a Unix socket
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return closed, true
	case errors.As(err, &address):
		return address.Error(), true
	case errors.Is(err, ErrSilent), errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return ErrSilent.Error(), false
	case network != nil:
		return network.Err.Error(), false
	}
	return "", false
}
