//go:build unix

package main

import (
	"crypto/x509"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Doctor says what is wrong with a connection that the URL is wrong for, or a cluster, and how many replicas there are.
func TestDoctorSaysHowToConnect(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.sign(t, "server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	secure, plain := withTLS(t, a), redistest.Real(t)
	bare := redistest.Real(t, "--cluster-enabled", "yes")
	replicated := redistest.Replicated(t, 1)
	for _, c := range []struct {
		args []string
		code int
		says []string
	}{
		{[]string{"--url", "redis://" + secure}, exitFailed, []string{"speaks TLS: use rediss://"}},
		{[]string{"--url", "redis://" + secure, "--cluster"}, exitFailed, []string{"speaks TLS: use rediss://"}},
		{[]string{"--url", "rediss://" + plain.Addr()}, exitFailed, []string{"speaks no TLS: use redis://"}},
		{[]string{"--url", "redis://" + plain.Addr(), "--cluster"}, exitFailed, []string{"leave out --cluster"}},
		{[]string{"--url", "redis://" + bare.Addr(), "--cluster"}, exitFailed, []string{"no node of this cluster has a slot", "ADDSLOTSRANGE"}},
		{[]string{"--url", "redis://" + replicated.Master.Addr()}, 0, []string{"master, 1 replica. One"}},
	} {
		p := start(t, plain.Addr(), append([]string{"doctor"}, c.args...)...)
		text, err := io.ReadAll(p.lines)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, "exit code", p.ends(), c.code)
		for _, say := range c.says {
			if !strings.Contains(string(text), say) {
				t.Errorf("doctor %q says\n%s\nand not %q", c.args, text, say)
			}
		}
	}
	bare.Do("cluster", "addslots", 0, 1, 2)
	p := start(t, bare.Addr(), "doctor", "--cluster")
	text, _ := io.ReadAll(p.lines)
	equal(t, "exit code", p.ends(), exitFailed)
	if !strings.Contains(string(text), "16381 of 16384 hash slots have no node") && !strings.Contains(string(text), noSlots) {
		t.Errorf("of a cluster with three slots doctor says\n%s", text)
	}
}

// Each command says what is wrong where the call, or what stands at the address, is wrong, without the names of methods; and where others may
// get a lock all the same, it does not say that nobody does.
func TestSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.sign(t, "server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	secure, open, locked := withTLS(t, a), redistest.Real(t), redistest.Real(t)
	bare := redistest.Real(t, "--cluster-enabled", "yes")
	gone := redistest.Real(t)
	gone.Do("config", "set", "replica-serve-stale-data", "no")
	gone.Do("replicaof", "127.0.0.1", "1")
	open.Do("acl", "setuser", "few", "on", ">pw", "+ping", "+hello", "+client")
	locked.Do("config", "set", "requirepass", "pw")
	web := httptest.NewServer(http.NotFoundHandler())
	defer web.Close()
	at := web.Listener.Addr().String()
	for _, c := range []struct {
		args []string
		env  string
		says string
	}{
		{[]string{"--url", "redis://" + secure}, "", "speaks TLS: use rediss://"},
		{[]string{"--url", "rediss://" + open.Addr()}, "", "speaks no TLS: use redis://"},
		{[]string{"--url", "redis://127.0.0.1:99999"}, "", "address 99999: invalid port"},
		{[]string{"--url", "unix:///no/such.sock"}, "", "Redis at /no/such.sock does not answer: no such file or directory"},
		{[]string{"--url", "redis://" + locked.Addr()}, "", "NOAUTH: the server asks for a password: give it by FENCELOCK_REDIS_PASSWORD"},
		{[]string{"--url", "redis://" + locked.Addr()}, passwordVariable + "=no", "WRONGPASS: the password or the user is wrong"},
		{[]string{"--url", "redis://few@" + open.Addr()}, passwordVariable + "=pw", "command: fencelock doctor names the rights"},
		{[]string{"--url", "redis://" + gone.Addr()}, "", "MASTERDOWN: the server is a replica that does not reach its master"},
		{[]string{"--url", "redis://" + bare.Addr(), "--cluster"}, "", "CLUSTERDOWN: the cluster is down, or has no node for a slot: fencelock doctor --cluster says more"},
		{[]string{"--url", "redis://" + open.Addr(), "--cluster"}, "", "the server is not of a cluster: leave out --cluster"},
		{[]string{"--url", "redis://" + open.Addr(), "--sentinel-master", "m"}, "", "the server is no Sentinel: leave out --sentinel-master"},
		{[]string{"--url", "redis://127.0.0.1:1?addr=127.0.0.1:2", "--sentinel-master", "m"}, "", "Sentinel at 127.0.0.1:1, 127.0.0.1:2 does not answer: connection refused"},
		{[]string{"--url", "redis://" + at}, "", "fencelock: " + at + " is no Redis: it answers HTTP/1.1 400 Bad Request"},
	} {
		for _, command := range [][]string{{"ls"}, {"run", "-n", "-c", "true", "x"}} {
			cmd := exec.Command("fencelock", append(slices.Clone(command), c.args...)...)
			cmd.Env = append(os.Environ(), c.env)
			text, _ := cmd.CombinedOutput()
			want := c.says
			if command[0] == "run" {
				want = strings.TrimPrefix(want, "fencelock: ")
			}
			if got := string(text); !strings.Contains(got, want) || strings.Contains(got, "inspect:") || strings.Contains(got, "meanwhile") != strings.Contains(got, "refused") {
				t.Errorf("%q says\n%s\nand not %q", cmd.Args, got, want)
			}
		}
	}
	cmd := exec.Command("fencelock", "ls")
	cmd.Env = append(os.Environ(), urlVariable+"=")
	if text, err := cmd.CombinedOutput(); err != nil && (strings.Contains(string(text), "meanwhile") || !strings.Contains(string(text), "neither --url nor ")) {
		t.Errorf("without a URL ls says\n%s", text)
	}
}

// Doctor says how near a server is to its maxmemory.
func TestDoctorOfRoom(t *testing.T) {
	for _, c := range []struct {
		policy, bound, used, apart string
		result, says               string
	}{
		{"noeviction", "0", "1000000", "", fine, "noeviction"},
		{"noeviction", "1000000", "899999", "", fine, "noeviction"},
		{"noeviction", "1000000", "900000", "", warning, "at maxmemory acquires return OOM"},
		{"noeviction", "1000000", "1000000", "", wrong, "acquires return OOM, and only releases work"},
		{"noeviction", "1000000", "1100000", "300000", fine, "noeviction"},
		{"allkeys-lru", "1000000", "1000000", "", wrong, "can be evicted"},
	} {
		d := &doctor{info: map[string]string{"maxmemory_policy": c.policy, "maxmemory": c.bound, "used_memory": c.used, "mem_not_counted_for_evict": c.apart}}
		d.examineMemory()
		if f := d.findings[0]; f.Result != c.result || !strings.Contains(f.Text, c.says) {
			t.Errorf("%+v: doctor finds %v", c, f)
		}
	}
}
