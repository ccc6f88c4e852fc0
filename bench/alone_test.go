package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/scripts"
)

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// do runs pairs by scripts.Do
func dialDo(addr string) (*client, error) {
	rdb := open(addr)
	s := scripts.New(rdb)
	n := 0
	return &client{close: func() { _ = rdb.Close() }, lock: func(key string) lockFunc {
		keys := scripts.KeysOf(key)
		return func(ctx context.Context) (int64, func() error, error) {
			n++
			field := fmt.Sprint("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:", n)
			a, err := s.Do(ctx, scripts.Acquire(keys, true, field, 30*time.Second, 1).InTurn(scripts.Turn{}))
			return a.Token, func() error {
				_, err := s.Do(ctx, scripts.Unlock(keys, field, true).CallingNewcomers())
				return err
			}, err
		}
	}}, nil
}

// the same, each on a goroutine of its own
func dialGo(addr string) (*client, error) {
	c, err := dialDo(addr)
	of := c.lock
	c.lock = func(key string) lockFunc {
		l := of(key)
		ch := make(chan struct{}, 1)
		return func(ctx context.Context) (t int64, u func() error, err error) {
			go func() { t, u, err = l(ctx); ch <- struct{}{} }()
			<-ch
			return t, func() (err error) {
				go func() { err = u(); ch <- struct{}{} }()
				<-ch
				return err
			}, err
		}
	}
	return c, err
}

type answered struct {
	ch  chan struct{}
	a   scripts.Answer
	err error
}

func (*answered) Sending(scripts.Caller) {}
func (c *answered) Answered(a scripts.Answer, err error) {
	c.a, c.err = a, err
	c.ch <- struct{}{}
}

// by the batcher
func dialSend(addr string) (*client, error) {
	rdb := open(addr)
	s := scripts.New(rdb)
	n := 0
	return &client{close: func() { _ = rdb.Close() }, lock: func(key string) lockFunc {
		keys := scripts.KeysOf(key)
		c := &answered{ch: make(chan struct{}, 1)}
		return func(ctx context.Context) (int64, func() error, error) {
			n++
			field := fmt.Sprint("aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:", n)
			op := scripts.Acquire(keys, true, field, 30*time.Second, 1).InTurn(scripts.Turn{})
			s.Send(&op, c)
			<-c.ch
			return c.a.Token, func() error {
				op := scripts.Unlock(keys, field, true).CallingNewcomers()
				s.Send(&op, c)
				<-c.ch
				return c.err
			}, c.err
		}
	}}, nil
}

func dialPing(addr string) (*client, error) {
	rdb := open(addr)
	return &client{close: func() { _ = rdb.Close() }, lock: func(key string) lockFunc {
		return func(ctx context.Context) (int64, func() error, error) {
			return 0, func() error { return rdb.Ping(ctx).Err() }, rdb.Ping(ctx).Err()
		}
	}}, nil
}

var _ = redis.Nil

func TestAlone(t *testing.T) {
	addr, _ := testServer(t)
	all := []struct {
		name string
		dial func(string) (*client, error)
	}{{"fenced", dialFenced}, {"unfenced", dialUnfenced}, {"redsync", dialRedsync}, {"redislock", dialRedislock}, {"rueidislock", dialRueidislock}, {"do", dialDo}, {"go do", dialGo}, {"send", dialSend}, {"2 pings", dialPing}}
	if only := os.Getenv("ONLY"); only != "" {
		all = slices.DeleteFunc(all, func(c struct {
			name string
			dial func(string) (*client, error)
		}) bool { return !slices.Contains(strings.Split(only, ","), c.name) })
	}
	took, used := make([][]float64, len(all)), make([][]float64, len(all))
	locks := make([]lockFunc, len(all))
	for i, c := range all {
		cl, err := c.dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		defer cl.close()
		locks[i] = cl.lock("alone:" + c.name)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	const n = 100
	for round := range 200 {
		for i, lock := range locks {
			began, c := time.Now(), cpu()
			for range n {
				_, unlock, err := lock(ctx)
				if err == nil {
					err = unlock()
				}
				if err != nil {
					t.Fatal(all[i].name, err)
				}
			}
			if round > 5 {
				took[i] = append(took[i], float64(time.Since(began).Microseconds())/n)
				used[i] = append(used[i], float64((cpu()-c).Microseconds())/n)
			}
		}
	}
	for i, c := range all {
		slices.Sort(took[i])
		slices.Sort(used[i])
		m := len(took[i])
		fmt.Printf("%-12s median %6.1f us, quarter %6.1f, tenth %6.1f; cpu median %6.1f, tenth %6.1f\n", c.name, took[i][m/2], took[i][m/4], took[i][m/10], used[i][m/2], used[i][m/10])
	}
}
