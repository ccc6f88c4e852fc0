package lockcertmagic_test

import (
	"context"
	"crypto/x509"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/adapters/lockcertmagic"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/rlock"
)

const bound = time.Minute // for what comes by itself

func TestMain(m *testing.M) {
	locktest.ServeAsSecond(second)
	os.Exit(locktest.Main(m, 4))
}

// second is the second process: a certmagic on the Redis at args[0] and the folder args[1].
func second(args []string) (locktest.Answer, error) {
	rdb := redis.NewClient(&redis.Options{Addr: args[0]})
	client, err := rlock.New(rdb, rlock.WithLease(6*time.Second))
	if err != nil {
		return nil, err
	}
	locker, err := lockcertmagic.New(client)
	if err != nil {
		return nil, err
	}
	config, _ := configure(rdb, locker.Storage(&certmagic.FileStorage{Path: args[1]}))
	return func(call string, args ...string) (string, error) {
		switch call {
		case "obtain":
			return "", config.ObtainCertSync(context.Background(), args[0])
		case "lock":
			return "", locker.Lock(context.Background(), args[0])
		}
		return "", fmt.Errorf("there is no %s", call)
	}, nil
}

// configure returns a certmagic whose issuer tells Redis, and waits until it hears from there.
func configure(rdb *redis.Client, storage certmagic.Storage) (config *certmagic.Config, stop func()) {
	cache := certmagic.NewCache(certmagic.CacheOptions{GetConfigForCert: func(certmagic.Certificate) (*certmagic.Config, error) { return config, nil }})
	config = certmagic.New(cache, certmagic.Config{Storage: storage, Issuers: []certmagic.Issuer{issuer{rdb}}})
	return config, cache.Stop
}

type issuer struct{ rdb *redis.Client }

func (i issuer) Issue(ctx context.Context, _ *x509.CertificateRequest) (*certmagic.IssuedCertificate, error) {
	i.rdb.RPush(ctx, "begun", os.Getpid())
	return &certmagic.IssuedCertificate{Certificate: []byte("a certificate")}, i.rdb.BLPop(ctx, 0, "end").Err()
}

func (issuer) IssuerKey() string { return "test" }
