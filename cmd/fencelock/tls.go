package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/plain"
)

// A dialer opens a connection.
type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// secure puts the certificates that were named into config, which is nil where the URL asks for no TLS, and returns the dialer for it.
func (c *connection) secure(config *tls.Config, timeout time.Duration) (dialer, error) {
	if config == nil {
		if c.ca != "" || c.cert != "" || c.key != "" {
			return nil, usage("--cacert, --cert and --key are for TLS: the URL of Redis has to begin with rediss:")
		}
		return nil, nil
	}
	if c.ca != "" {
		text, err := os.ReadFile(c.ca)
		if err != nil {
			return nil, usage("--cacert: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, usage("--cacert: there is no certificate in %s: it has to be in the PEM form", c.ca)
		}
	}
	switch {
	case c.cert != "" && c.key != "":
		pair, err := tls.LoadX509KeyPair(c.cert, c.key)
		if err != nil {
			return nil, usage("--cert and --key: %w", err)
		}
		config.Certificates = []tls.Certificate{pair}
	case c.cert != "":
		return nil, usage("--cert needs --key, the file with its private key")
	case c.key != "":
		return nil, usage("--key needs --cert, the file with its certificate")
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn := &secured{at: c}
		own := config.Clone()
		own.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			conn.asked = true
			if len(config.Certificates) > 0 {
				return &config.Certificates[0], nil
			}
			return new(tls.Certificate), nil // none
		}
		var err error
		if conn.Conn, err = redis.NewDialer(&redis.Options{DialTimeout: timeout, TLSConfig: own})(ctx, network, addr); err != nil {
			return nil, conn.explain(err)
		}
		return conn, nil
	}, nil
}

// secured is a connection with TLS. Its server may refuse the client's certificate after the handshake, and close the connection before it
// is heard.
type secured struct {
	net.Conn
	at    *connection
	asked bool        // the server has asked for the client's certificate
	heard atomic.Bool // it has answered something
}

func (s *secured) Read(part []byte) (int, error) {
	n, err := s.Conn.Read(part)
	if n > 0 {
		s.heard.Store(true)
	}
	return n, s.explain(err)
}

func (s *secured) Write(part []byte) (int, error) {
	n, err := s.Conn.Write(part)
	return n, s.explain(err)
}

// explain adds to an error which option mends it.
func (s *secured) explain(err error) error {
	if hint := s.hint(err); hint != "" {
		return fmt.Errorf("%w: %w", err, plain.Hint(hint)) // two errors: of one, go-redis shows what it wraps
	}
	return err
}

// hint says which option mends an error, if one does.
func (s *secured) hint(err error) string {
	var unknown x509.UnknownAuthorityError
	var slow net.Error
	switch {
	case err == nil || s.heard.Load():
		return ""
	case errors.As(err, &unknown) && s.at.ca == "":
		return "name the file of a private CA with --cacert, or in SSL_CERT_FILE"
	case errors.As(err, &unknown):
		return "no CA in " + s.at.ca + " has signed the server's certificate"
	case !s.asked || errors.As(err, &slow) && slow.Timeout():
		return ""
	case s.at.cert == "":
		return "the server asks for the client's certificate: name it with --cert and --key"
	}
	return "the server asks for the client's certificate, and does not seem to accept " + s.at.cert
}
