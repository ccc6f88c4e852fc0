//go:build unix

package main

import (
	"crypto/x509"
	"io"
	"net"
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
