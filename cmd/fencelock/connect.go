package main

import (
	"cmp"
	"errors"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/pflag"
)

const (
	urlVariable      = "FENCELOCK_REDIS_URL"
	passwordVariable = "FENCELOCK_REDIS_PASSWORD"
	defaultURL       = "redis://127.0.0.1:6379"
	// passwordParameter is the master's password in the URL of a Sentinel, whose own stands before the host.
	passwordParameter = "password"
	// dialTimeout is the default of go-redis.
	dialTimeout = 5 * time.Second
)

// connection is where Redis is, or the servers of a quorum are.
type connection struct {
	urls         []string // of --url, each of which may have several
	urlsFile     string
	passwordFile string
	sentinel     string // the master's name
	cluster      bool
	ca           string // files, for TLS
	cert, key    string
	maxLease     duration // of a quorum's clients
}

func (c *connection) addFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&c.urls, "url", nil, "where Redis is: redis://, rediss:// or unix:// (default $"+urlVariable+", then "+defaultURL+"); for a quorum one for each server")
	flags.StringVar(&c.urlsFile, "urls-file", "", "file with the URLs of a quorum's servers, one a line")
	flags.Var(&c.maxLease, "max-lease", "the longest lease of a quorum's clients (quorum.WithMaxLease): a server that has started counts after it (default 30s)")
	flags.StringVar(&c.passwordFile, "password-file", "", "file with the password in its first line (default $"+passwordVariable+")")
	flags.StringVar(&c.sentinel, "sentinel-master", "", "the URL is that of a Sentinel, and this the name of the master")
	flags.BoolVar(&c.cluster, "cluster", false, "the URL is that of a node of a cluster")
	flags.StringVar(&c.ca, "cacert", "", "file with the CAs that the server's certificate may be of (default those that the system trusts)")
	flags.StringVar(&c.cert, "cert", "", "file with the certificate for a server that asks for the client's")
	flags.StringVar(&c.key, "key", "", "file with the private key of --cert")
}

// open returns a client for Redis, which has asked nothing yet. It is an error where there are several URLs.
func (c *connection) open() (redis.UniversalClient, error) {
	if c.several() {
		return nil, usage("this command is for one Redis: give one URL, not those of a quorum's servers")
	}
	all, err := c.openAll()
	if err != nil {
		return nil, err
	}
	return all[0], nil
}

// openOne returns a client for the Redis at this address.
func (c *connection) openOne(address string, one bool) (redis.UniversalClient, error) {
	password, err := c.password()
	if err != nil {
		return nil, err
	}
	if u, err := url.Parse(address); err == nil && u.Scheme != "unix" && (u.Fragment != "" || strings.Contains(u.Path, "@")) { // of a password
		return nil, wrongURL(address, errors.New("a # or a / in it"))
	}
	switch {
	case c.cluster && c.sentinel != "":
		return nil, usage("--cluster and --sentinel-master exclude each other")
	case c.cluster:
		o, err := redis.ParseClusterURL(address)
		if err != nil {
			return nil, wrongURL(address, err)
		}
		o.Password = cmp.Or(password, o.Password)
		if o.Dialer, err = c.secure(o.TLSConfig, cmp.Or(o.DialTimeout, dialTimeout)); err != nil {
			return nil, err
		}
		return redis.NewClusterClient(o), nil
	case c.sentinel != "":
		o, err := redis.ParseFailoverURL(address)
		if err != nil {
			return nil, wrongURL(address, err)
		}
		o.MasterName, o.Password = c.sentinel, cmp.Or(password, o.Password)
		if o.SentinelPassword == "" { // a user without a password is not the Sentinel's
			o.Username, o.SentinelUsername = cmp.Or(o.Username, o.SentinelUsername), ""
		}
		if o.Dialer, err = c.secure(o.TLSConfig, cmp.Or(o.DialTimeout, dialTimeout)); err != nil {
			return nil, err
		}
		o.MaxRetries, o.DialerRetries = 1, 1 // why no Sentinel answers is told within askTimeout
		return redis.NewFailoverClient(o), nil
	}
	o, err := redis.ParseURL(address)
	if err != nil {
		return nil, wrongURL(address, err)
	}
	o.Password = cmp.Or(password, o.Password)
	if o.Dialer, err = c.secure(o.TLSConfig, cmp.Or(o.DialTimeout, dialTimeout)); err != nil {
		return nil, err
	}
	if !one { // the others answer meanwhile: what is wrong with this one is told soon
		o.MaxRetries, o.DialerRetries = 1, 1
	}
	return redis.NewClient(o), nil
}

// wrongURL shows neither the URL, which may have a password, nor an error that quotes a part of it: of a password with a / the rest is
// taken for the database, and of one with a ? for options.
func wrongURL(address string, err error) error {
	_, query, _ := strings.Cut(address, "?")
	why := "a part of it cannot be read"
	if strings.HasPrefix(err.Error(), "redis: invalid URL scheme") {
		why = "it begins with none of redis:, rediss: and unix:"
	} else if options, is := strings.CutPrefix(err.Error(), "redis: unexpected option: "); is && !strings.Contains(query, "@") && strings.Trim(options, "abcdefghijklmnopqrstuvwxyz_, ") == "" {
		why = "there is no option " + options
	}
	return usage("the URL of Redis is not usable: %s. Write it as %s, rediss://user@host:6380/1 or unix:///run/redis.sock, and in a password / as %%2F, # as %%23, ? as %%3F, @ as %%40 and %% as %%25", why, defaultURL)
}

// password is the one that was given apart from the URL, "" for none.
func (c *connection) password() (string, error) {
	if c.passwordFile == "" {
		return os.Getenv(passwordVariable), nil
	}
	text, err := os.ReadFile(c.passwordFile)
	if err != nil {
		return "", usage("--password-file: %w", err)
	}
	line, _, _ := strings.Cut(string(text), "\n")
	if line = strings.TrimSuffix(line, "\r"); line == "" {
		return "", usage("--password-file: the first line of %s is empty", c.passwordFile)
	}
	return line, nil
}
