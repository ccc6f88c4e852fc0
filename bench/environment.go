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
	Others   *float64          `json:"others,omitempty"`   // the share of the CPUs that programs without part in the run took meanwhile; nil where there is no /proc
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
	env.Modules = versionsOf("go-redis/v9", "redislock", "redsync/v4", "rueidis")
	return env, nil
}

// versionsOf returns the versions of the modules in this program whose paths end so.
func versionsOf(names ...string) map[string]string {
	versions := map[string]string{}
	build, ok := debug.ReadBuildInfo()
	if !ok {
		return versions
	}
	for _, m := range build.Deps {
		for _, name := range names {
			if strings.HasSuffix(m.Path, "/"+name) {
				versions[name] = m.Version
			}
		}
	}
	return versions
}
