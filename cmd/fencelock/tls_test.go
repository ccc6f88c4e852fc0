//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redisserver"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// An authority signs certificates, which are files.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// newAuthority makes an authority, whose own certificate is ca.crt.
func newAuthority(t *testing.T) *authority {
	a := &authority{dir: t.TempDir()}
	a.cert, a.key = a.sign(t, "ca", &x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	return a
}

// path is that of a file of the authority.
func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// sign makes NAME.crt and NAME.key, the first time signed by themselves.
func (a *authority) sign(t *testing.T, name string, c *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	locktest.NoError(t, err)
	c.SerialNumber, c.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: name}
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	locktest.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	locktest.NoError(t, err)
	locktest.NoError(t, os.WriteFile(a.path(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	locktest.NoError(t, os.WriteFile(a.path(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	cert, err := x509.ParseCertificate(der)
	locktest.NoError(t, err)
	return cert, key
}

// withTLS is the address of a server that speaks TLS and asks for a client's certificate: the server itself, or where that has no TLS a
// proxy before it.
func withTLS(t *testing.T, a *authority) string {
	port, err := redisserver.FreePort()
	locktest.NoError(t, err)
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	args := []string{"--tls-port", strconv.Itoa(port), "--tls-cert-file", a.path("server.crt"), "--tls-key-file", a.path("server.key"), "--tls-ca-cert-file", a.path("ca.crt")}
	server, err := redisserver.Start(t.TempDir(), args...)
	if err == nil {
		t.Cleanup(server.Close)
		if c, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr); err == nil {
			_ = c.Close()
			return addr
		}
	}
	behind := redistest.Real(t)
	pair, err := tls.LoadX509KeyPair(a.path("server.crt"), a.path("server.key"))
	locktest.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert})
	locktest.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			front, err := listener.Accept()
			if err != nil {
				return
			}
			back, err := net.Dial("tcp", behind.Addr())
			if err != nil {
				_ = front.Close()
				continue
			}
			go func() { _, _ = io.Copy(back, front); _ = back.Close() }()
			go func() { _, _ = io.Copy(front, back); _ = front.Close() }()
		}
	}()
	return listener.Addr().String()
}

// A server that speaks TLS with a certificate of a private CA, and asks for the client's, is reached with --cacert, --cert and --key.
// Without one of them the error says which.
func TestClientCertificate(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a server process of its own is for a run without -short")
	}
	a, other := newAuthority(t), newAuthority(t)
	a.sign(t, "server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	a.sign(t, "client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	addr := withTLS(t, a)
	at := []string{"--url", "rediss://" + addr}
	ca, client := []string{"--cacert", a.path("ca.crt")}, []string{"--cert", a.path("client.crt"), "--key", a.path("client.key")}
	join := func(parts ...[]string) (all []string) {
		for _, part := range parts {
			all = append(all, part...)
		}
		return all
	}

	with := join(at, ca, client)
	p := start(t, addr, join([]string{"run"}, with, []string{"x"}, sh("echo up; read -r x < "+fifo(t)))...)
	equal(t, "", p.line(), "up")
	ls := start(t, addr, join([]string{"ls", "-o", "name", "x"}, with)...)
	equal(t, "ls", ls.line(), "x")
	equal(t, "exit code of ls", ls.ends(), 0)

	for _, c := range []struct {
		what string
		args []string
		code int
		says string
	}{
		{"no CA", join(at, client), exitFailed, "--cacert"},
		{"another CA", join(at, client, []string{"--cacert", other.path("ca.crt")}), exitFailed, "no CA in " + other.path("ca.crt")},
		{"no certificate", join(at, ca), exitFailed, "name it with --cert and --key"},
		{"a certificate that the server does not know", join(at, ca, []string{"--cert", other.path("ca.crt"), "--key", other.path("ca.key")}), exitFailed, "does not seem to accept "},
		{"half a pair", join(at, ca, client[:2]), exitUsage, "--key"},
		{"no TLS", join([]string{"--url", "redis://" + addr}, ca), exitUsage, "rediss:"},
		{"no file", join(at, []string{"--cacert", a.path("none")}), exitUsage, "--cacert"},
		{"no CA in the file", join(at, []string{"--cacert", a.path("client.key")}), exitUsage, "no certificate in"},
		{"another key", join(at, ca, client[:2], []string{"--key", a.path("server.key")}), exitUsage, "--cert and --key"},
	} {
		p := start(t, addr, join([]string{"ls"}, c.args)...)
		equal(t, "exit code with "+c.what, p.ends(), c.code)
		if !strings.Contains(p.said(), c.says) {
			t.Errorf("with %s it says %s", c.what, p.said())
		}
	}
	doctor := start(t, addr, join([]string{"doctor"}, at)...)
	if line := doctor.line(); !strings.Contains(line, "--cacert") {
		t.Errorf("doctor says %s", line)
	}
	equal(t, "exit code of doctor", doctor.ends(), exitFailed)
}
