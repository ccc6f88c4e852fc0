package main

import (
	"context"
	"fmt"
	"net/url"

	"go.etcd.io/etcd/api/v3/version"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/fencelock/fencelock/internal/test/redisserver"
)

// The members of the contenders of these names. Each is a cluster of its own.
var etcd, etcdNoSync = ownServer{name: "etcd"}, ownServer{name: "etcd-nosync"}

// startEtcd starts a member. Beside the addresses and the log, its settings are as they come.
func startEtcd(ctx context.Context, dir string, sync bool) (served, error) {
	versions := map[string]string{"etcd": version.Version}
	if sync {
		took, err := fsyncTakes(dir)
		if err != nil {
			return served{}, err
		}
		versions["a write of 4 KiB with fsync takes"] = duration(micros(took))
	}
	cfg := embed.NewConfig()
	cfg.Dir, cfg.UnsafeNoFsync, cfg.LogLevel = dir, !sync, "error"
	var urls []url.URL
	for range 2 {
		port, err := redisserver.FreePort()
		if err != nil {
			return served{}, err
		}
		urls = append(urls, url.URL{Scheme: "http", Host: fmt.Sprintf("127.0.0.1:%d", port)})
	}
	cfg.ListenClientUrls, cfg.ListenPeerUrls = urls[:1], urls[1:]
	cfg.AdvertiseClientUrls, cfg.AdvertisePeerUrls = urls[:1], urls[1:]
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	member, err := embed.StartEtcd(cfg)
	if err != nil {
		return served{}, err
	}
	select {
	case <-member.Server.ReadyNotify():
	case err = <-member.Err():
	case <-ctx.Done():
		err = fmt.Errorf("etcd is not ready: %w", ctx.Err())
	}
	if err != nil {
		member.Close()
		return served{}, err
	}
	return served{addr: urls[0].Host, versions: versions, stop: member.Close}, nil
}

// dialEtcd makes one session for all locks of the client. The token is the revision at which the lock was got: a holder before had
// a lower one, because its end is a revision itself.
func (s *ownServer) dialEtcd(string) (*client, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{s.addr}, Logger: zap.NewNop()})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if _, err := c.Get(ctx, "value"); err != nil { // to a server that is gone NewSession would try for ever
		_ = c.Close()
		return nil, err
	}
	session, err := concurrency.NewSession(c)
	if err != nil {
		_ = c.Close()
		return nil, err
	}
	return &client{
		close: func() { _ = session.Close(); _ = c.Close() },
		lock: func(key string) lockFunc {
			return func(ctx context.Context) (int64, func() error, error) {
				mutex := concurrency.NewMutex(session, key)
				if err := mutex.Lock(ctx); err != nil {
					return 0, nil, err
				}
				return mutex.Header().Revision, func() error { return mutex.Unlock(ctx) }, nil
			}
		},
	}, nil
}
