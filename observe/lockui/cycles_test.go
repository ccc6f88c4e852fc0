package lockui_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
)

// Clients that wait in a circle are named above the locks, with the ways out, and their locks are stuck. A page of no circle says nothing.
func TestCycles(t *testing.T) {
	rdb := redistest.New(t)
	says(t, rdb, 1, "billing", []presence.Hold{{Lock: "x", Field: hold(t, rdb, "x", 1, time.Minute), For: 50 * time.Second}}, []presence.Wait{{Lock: "y", Calls: 1, For: 20 * time.Second}})
	says(t, rdb, 2, "mail", []presence.Hold{{Lock: "y", Field: hold(t, rdb, "y", 2, time.Minute), For: 50 * time.Second}}, []presence.Wait{{Lock: "x", Calls: 1, For: 14 * time.Second}})
	says(t, rdb, 3, "others", []presence.Hold{{Lock: "z", Field: hold(t, rdb, "z", 3, time.Minute), For: 50 * time.Second}}, []presence.Wait{{Lock: "y", Calls: 1, For: 50 * time.Second}})
	wait(t, rdb, "x", 2)
	wait(t, rdb, "y", 1)
	page := newPage(t, rdb)
	contains(t, ok(t, page, "/"), "2 locks are stuck", "2 clients wait in a circle", `for 50 s, and waits for <a class="lock" data-key="waited 0 1" href="lock?name=x">x</a>, for 14 s`, "DoAll", "rlock.Wait")
	locktest.Equal(t, "the locks", list(t, page, "/?format=json").String(), "x stuck, y stuck, z held")
	var data struct {
		Cycles [][]struct {
			By       struct{ Name string }
			Holds    string
			Held     int64  `json:"held_ms"`
			WaitsFor string `json:"waits_for"`
			Waited   int64  `json:"waited_ms"`
		}
	}
	locktest.NoError(t, json.Unmarshal([]byte(ok(t, page, "/?format=json")), &data))
	if len(data.Cycles) != 1 || len(data.Cycles[0]) != 2 {
		t.Fatalf("the circles: %+v", data.Cycles)
	}
	if l := data.Cycles[0][1]; l.By.Name != "mail" || l.Holds != "y" || l.WaitsFor != "x" || l.Held != 50_000 || l.Waited != 14_000 {
		t.Errorf("the second one: %+v", l)
	}
	says(t, rdb, 2, "mail", nil, nil)
	lacks(t, ok(t, newPage(t, rdb), "/"), "circle")
}
