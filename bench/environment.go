package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// environment says what was measured on what.
type environment struct {
	Command  string            `json:"command"`
	Date     string            `json:"date"`
	Go       string            `json:"go"`
	Platform string            `json:"platform"`
	CPUs     int               `json:"cpus"` // shared by the program and the server
	Server   string            `json:"server"`
	Modules  map[string]string `json:"modules"`
	Window   float64           `json:"window_seconds"`
	Repeats  int               `json:"repeats"`
	LeftOut  []string          `json:"left_out,omitempty"` // contenders, and why
}

func (p plan) environment(ctx context.Context, rdb *redis.Client) (environment, error) {
	env := environment{
		Date: time.Now().UTC().Format(time.DateOnly), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		CPUs: runtime.NumCPU(), Modules: map[string]string{}, Window: p.timing.window.Seconds(), Repeats: p.repeats,
	}
	info, err := rdb.Info(ctx, "server").Result()
	if err != nil {
		return env, err
	}
	env.Server = "Redis"
	for line := range strings.Lines(info) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), ":"); name {
		case "redis_version":
			env.Server += " " + value
		case "valkey_version":
			env.Server = "Valkey " + value + ", compatible with Redis"
		}
	}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return env, nil
	}
	for _, m := range build.Deps {
		for _, of := range []string{"go-redis/v9", "redislock", "redsync/v4", "rueidis"} {
			if strings.HasSuffix(m.Path, "/"+of) {
				env.Modules[of] = m.Version
			}
		}
	}
	return env, nil
}
