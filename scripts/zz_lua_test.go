package scripts

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestZZLua(t *testing.T) {
	addr := os.Getenv("ZZ")
	if addr == "" {
		t.Skip()
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	s := New(rdb)
	ctx := context.Background()
	rdb.FlushAll(ctx)
	for round := 0; round < 3; round++ {
		rdb.ConfigResetStat(ctx)
		for i := 0; i < 1000; i++ {
			var a, u group
			for j := 0; j < 32; j++ {
				k := KeysOf(fmt.Sprintf("k%d", j))
				f := fmt.Sprintf("01234567-89ab-cdef-0123-456789abcdef:%d", i*32+j)
				x, y := Acquire(k, true, f, 30*time.Second, 1), Unlock(k, f, false)
				a, u = append(a, &x), append(u, &y)
			}
			for _, g := range []group{a, u} {
				if _, err := s.send(ctx, &batch, g.line()); err != nil {
					t.Fatal(err)
				}
			}
		}
		info := rdb.Info(ctx, "commandstats").Val()
		for _, l := range strings.Split(info, "\r\n") {
			if strings.Contains(l, "_evalsha") || strings.Contains(l, "incrby") || strings.Contains(l, "hdel") || strings.Contains(l, "publish") {
				fmt.Println(l[:60])
			}
		}
	}
}
