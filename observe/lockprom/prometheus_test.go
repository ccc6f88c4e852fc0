package lockprom_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/realtime"
	"github.com/fencelock/fencelock/internal/test/redisserver"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/lockprom"
	"github.com/fencelock/fencelock/rlock"
)

// program is the path of a program of Prometheus: what the variable says, or the one on PATH. Where there is none the test is skipped,
// and in CI it fails.
func program(t *testing.T, variable, name string) string {
	t.Helper()
	if path := os.Getenv(variable); path != "" {
		return path
	}
	path, err := exec.LookPath(name)
	if err == nil {
		return path
	}
	missing := fmt.Sprintf("%s: there is no %s: install prometheus, as .ci/prometheus does, or set %s to its path", t.Name(), name, variable)
	if os.Getenv("CI") != "" {
		t.Fatal(missing)
	}
	fmt.Fprintln(os.Stderr, "SKIPPED", missing)
	t.Skip(missing)
	return ""
}

// The rules load, and each alert fires when it should and not before.
func TestRules(t *testing.T) {
	promtool := program(t, "PROMTOOL", "promtool")
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "testdata/alerts_test.yml"}} {
		if out, err := exec.CommandContext(t.Context(), promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// server is a Prometheus that scrapes one target, with the rules of this package.
type server struct {
	t    *testing.T
	addr string
}

func startPrometheus(t *testing.T, target string) *server {
	t.Helper()
	realtime.Test(t, "a Prometheus that sees each change within a minute")
	prometheus := program(t, "PROMETHEUS", "prometheus")
	dir := t.TempDir()
	port, err := redisserver.FreePort()
	locktest.NoError(t, err)
	s := &server{t, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}
	locktest.NoError(t, os.WriteFile(filepath.Join(dir, "alerts.yml"), lockprom.Rules, 0o600))
	config := filepath.Join(dir, "prometheus.yml")
	locktest.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
global: {scrape_interval: 250ms, evaluation_interval: 250ms}
rule_files: [alerts.yml]
scrape_configs:
  - job_name: orders
    static_configs: [{targets: [%q]}]
`, target), 0o600))
	log, err := os.Create(filepath.Join(dir, "log"))
	locktest.NoError(t, err)
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, prometheus, "--config.file="+config, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+s.addr)
	cmd.Stdout, cmd.Stderr = log, log
	locktest.NoError(t, cmd.Start())
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait() // it was killed
		_ = log.Close()
		if said, _ := os.ReadFile(log.Name()); t.Failed() {
			t.Logf("prometheus says:\n%s", said)
		}
	})
	s.until("it scrapes", func() bool { return s.value("up") == 1 })
	return s
}

// get asks the API. A server that does not answer yet says nothing.
func (s *server) get(path string, answer any) {
	s.t.Helper()
	resp, err := http.Get("http://" + s.addr + "/api/v1/" + path)
	if err != nil {
		return
	}
	defer func() { _ = resp.Body.Close() }()
	_ = json.NewDecoder(resp.Body).Decode(answer)
}

// values are the results of a query.
func (s *server) values(query string) (values []float64) {
	s.t.Helper()
	var answer struct {
		Error string
		Data  struct{ Result []struct{ Value [2]any } }
	}
	s.get("query?query="+url.QueryEscape(query), &answer)
	if answer.Error != "" {
		s.t.Fatalf("%s: %s", query, answer.Error)
	}
	for _, r := range answer.Data.Result {
		v, err := strconv.ParseFloat(r.Value[1].(string), 64)
		locktest.NoError(s.t, err)
		values = append(values, v)
	}
	return values
}

// value is the sum of the results of a query.
func (s *server) value(query string) (sum float64) {
	s.t.Helper()
	for _, v := range s.values(query) {
		sum += v
	}
	return sum
}

// firing are the names of the alerts that fire.
func (s *server) firing() map[string]bool {
	s.t.Helper()
	var answer struct {
		Data struct {
			Alerts []struct {
				State  string
				Labels map[string]string
			}
		}
	}
	s.get("alerts", &answer)
	firing := map[string]bool{}
	for _, a := range answer.Data.Alerts {
		if a.State == "firing" {
			firing[a.Labels["alertname"]] = true
		}
	}
	return firing
}

func (s *server) until(what string, cond func() bool) {
	s.t.Helper()
	redistest.Settles(s.t, time.Minute, cond, "%s", what)
}

// A service with locks, seen by a real Prometheus: what happens is in the metrics, alerts fire for it, and each panel of the dashboard
// shows something.
func TestPrometheus(t *testing.T) {
	locks := lockprom.New(lockprom.WithLockGroup(func(string) string { return "accounts" }))
	registry := prometheus.NewRegistry()
	registry.MustRegister(locks)
	web := httptest.NewServer(promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	defer web.Close()
	rdb := redistest.New(t)
	client, err := rlock.New(rdb, rlock.WithTrace(locks.Trace()), rlock.WithLease(time.Minute))
	locktest.NoError(t, err)
	defer client.Close()
	marks := guard.NewMemory(guard.WithTrace(locks.Trace()))
	l := fenced.NewLock(client, "account:42")
	leads, err := fenced.NewLock(client, "leader").Acquire(t.Context(), rlock.Lasting("leads"))
	locktest.NoError(t, err)
	locktest.NoError(t, leads.Unlock(t.Context()))
	held, first, err := l.LockAndGetToken(t.Context())
	locktest.NoError(t, err)
	prom := startPrometheus(t, strings.TrimPrefix(web.URL, "http://"))

	waits := locktest.StartLock(func() (context.Context, error) { return locktest.NoToken(l.LockAndGetToken(t.Context())) })
	_, _, err = l.TryLockAndGetToken(t.Context(), time.Millisecond, 0)
	locktest.IsError(t, err, rlock.ErrNotAcquired)
	prom.until("one waits, one holds", func() bool {
		return prom.value(`fencelock_waiter_active{job="orders",group="accounts",lasting=""}`) == 1 && prom.value("fencelock_hold_active") == 1
	})
	prom.until("the counters were seen at zero", func() bool { return prom.value(`count_over_time(fencelock_hold_lost_total{outcome="lost"}[1m])`) >= 2 })
	prom.until("renewals were seen", func() bool { return prom.value("increase(fencelock_renewal_margin_count[1m])") > 0 })
	if firing := prom.firing(); len(firing) > 0 {
		t.Errorf("before anything is wrong these alerts fire: %v", firing)
	}

	locktest.NoError(t, rdb.Del(t.Context(), "account:42").Err())
	r := <-waits
	locktest.NoError(t, r.Err)
	<-held.Done()
	runtime.KeepAlive(held) // otherwise it could be lost as one that was dropped
	second, err := l.Token(r.Ctx)
	locktest.NoError(t, err)
	locktest.NoError(t, marks.Check(t.Context(), "account:42", second))
	locktest.IsError(t, marks.Check(t.Context(), "account:42", first), guard.ErrStale)
	prom.until("alerts fire", func() bool {
		firing := prom.firing()
		return firing["FencelockLockLost"] && firing["FencelockWriteRefused"]
	})
	locktest.NoError(t, l.Unlock(r.Ctx))
	prom.until("nobody holds or waits", func() bool {
		return prom.value("fencelock_hold_active") == 0 && prom.value("fencelock_waiter_active") == 0 && prom.value(`fencelock_hold_duration_seconds_count{lasting=""}`) == 2
	})

	for _, p := range panels(t) {
		for _, target := range p.Targets {
			query := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1m", "$job", "orders", "$instance", ".*").Replace(target.Expr)
			prom.until(fmt.Sprintf("the panel %q shows %s", p.Title, query), func() bool { return len(prom.values(query)) > 0 })
		}
	}
	locktest.Equal(t, "locks lost, on the dashboard", prom.value(`sum(fencelock_hold_lost_total)`), 1)
}
