package main

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/test/realtime"
)

func TestRedisson(t *testing.T) {
	realtime.Test(t, "loads of 60 ms by a JVM")
	addr, rdb := testServer(t)
	c := contenderOf(t, "redisson")
	var progress bytes.Buffer
	begin := round{addr: addr, rdb: rdb, timing: tiny}
	versions, err := c.prepare(t.Context(), begin, &progress)
	if err != nil {
		t.Fatalf("the JVM contender could not be tested, it needs a JDK (17 or later) and Maven: %v\n%s", err, &progress)
	}
	t.Cleanup(c.finish)
	if !strings.HasPrefix(versions["redisson"], "4.") || versions["java"] == "" {
		t.Errorf("versions are %v", versions)
	}
	for i, m := range []mode{
		{family: "own", goroutines: 8, clients: 1},
		{family: "one", goroutines: 8, clients: 4, inside: "get"},
		{family: "one", goroutines: 4, clients: 2, inside: "1ms"},
		{family: "hot", goroutines: 8, clients: 4},
		{family: "own", goroutines: 8, clients: 1, slow: true},
		mode{}.with(4, 8),
		mode{inside: "2ms", busy: true}.with(16, 1),
		mode{kind: semaphore}.with(16, 1),
		mode{kind: semaphore, inside: "2ms"}.with(16, 1),
		mode{kind: readWrite, reads: 10}.with(16, 1),
		mode{kind: readWrite, reads: 9, inside: "2ms"}.with(16, 1),
	} {
		t.Run(m.name(), func(t *testing.T) {
			r := begin
			r.id, r.contender, r.mode = i, c, m
			res, err := r.run(t.Context())
			for err == nil && res.Pairs == 0 && r.timing.window < 10*time.Second { // on a busy machine nothing may end within the window
				r.id += 1000
				r.timing.window *= 4
				res, err = r.run(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			if res.Pairs == 0 || res.PairsPerSec <= 0 || res.WaitMax < res.WaitP99 || res.WaitP99 < res.WaitP50 || res.WaitP50 <= 0 {
				t.Errorf("%d pairs, %v/s, waits %v, %v, %v", res.Pairs, res.PairsPerSec, res.WaitP50, res.WaitP99, res.WaitMax)
			}
			if res.UseP50 <= 0 || res.UseP99 < res.UseP50 {
				t.Errorf("uses %v, %v", res.UseP50, res.UseP99)
			}
			if res.Commands < 1 || res.Connections < 1 || res.ClientCPU <= 0 || res.AllocBytes <= 0 || res.Tokens != (m.kind == "") {
				t.Errorf("%+v", res)
			}
			if res.Overlaps > 0 || res.OutOfOrder > 0 || res.Errors > 0 {
				t.Errorf("%+v", res)
			}
		})
	}
	t.Run("a JVM that is gone", func(t *testing.T) {
		r := begin
		r.id, r.contender, r.mode = 100, c, warmUps[0]
		_ = redisson.process.cmd.Process.Kill()
		if res, err := r.run(t.Context()); err != nil || res.Errors != 1 || res.FirstError == "" {
			t.Errorf("%+v, %v; want an error in the result", res, err)
		}
		if res, err := r.run(t.Context()); err != nil || res.Pairs == 0 || res.Errors != 0 {
			t.Errorf("%+v, %v; want a new JVM", res, err)
		}
	})
}

func TestWithoutJavaItIsLeftOut(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, err := exec.LookPath("java"); err == nil {
		t.Fatal("java is found without a PATH: this test cannot take it away")
	}
	var env environment
	var progress bytes.Buffer
	p := plan{contenders: contenders, modes: usualModes()}
	p.prepare(t.Context(), round{}, &env, &progress)()
	if len(p.contenders) != len(contenders)-1 || len(env.LeftOut) != 1 || !strings.Contains(env.LeftOut[0], "redisson: there is no java") {
		t.Errorf("%d contenders, left out %v", len(p.contenders), env.LeftOut)
	}
	if !strings.Contains(progress.String(), "!!! redisson is LEFT OUT") {
		t.Errorf("the progress is %s", &progress)
	}
	if text := (report{Environment: env}).markdown(nil); !strings.Contains(text, "**Left out**: redisson: there is no java") {
		t.Errorf("the report does not say so:\n%s", text)
	}
}
