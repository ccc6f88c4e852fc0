package lockui_test

import (
	"html"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/presence"
	"github.com/fencelock/fencelock/internal/quorums"
	"github.com/fencelock/fencelock/internal/test/locktest"
	"github.com/fencelock/fencelock/internal/test/redistest"
	"github.com/fencelock/fencelock/observe/inspect"
	"github.com/fencelock/fencelock/observe/lockui"
)

// The page of a quorum names who has a majority, and which servers do not count; a page of one server says that it shows a part, and frees nothing.
func TestQuorum(t *testing.T) {
	var servers []*redistest.Server
	var direct []*redis.Client
	var all []redis.UniversalClient
	for range 5 {
		s := redistest.Real(t)
		servers, direct, all = append(servers, s), append(direct, s.Client()), append(all, redistest.Client(t, s.Addr()))
	}
	in, err := inspect.NewQuorum(all, inspect.WithMaxLease(time.Second))
	locktest.NoError(t, err)
	free := lockui.WithForceUnlock(func(*http.Request) bool { return true })
	page := lockui.New(in, free, lockui.WithLogger(new(locktest.Log).Logger()))
	redistest.Eventually(t, 20*time.Second, func() bool { return !strings.Contains(get(page, "/").Body.String(), "does not count") }, "all servers count")

	owner, rest := quorums.NewID(5), quorums.NewID(5)
	for i, rdb := range direct {
		id := owner
		if i == 4 {
			id = rest
		}
		if i != 3 {
			locktest.NoError(t, rdb.HSet(t.Context(), "l", id+":1", 1).Err())
			locktest.NoError(t, rdb.Expire(t.Context(), "l", time.Minute).Err())
		}
		for n, name := range map[string]string{owner: "billing", rest: "<b>mail"} {
			c := &presence.Client{ID: n, Name: name, Host: "h"}
			if n == owner {
				c.Holds = []presence.Hold{{Lock: "l", Field: id + ":1", For: time.Hour}}
			}
			locktest.NoError(t, presence.Write(t.Context(), rdb, c))
		}
	}
	var text string
	redistest.Eventually(t, 20*time.Second, func() bool { text = ok(t, page, "/"); return strings.Contains(text, "billing") }, "what clients say is read again")
	contains(t, text, "billing", "on 3 of 5 servers")
	lacks(t, text, "<b>", "does not count")
	text = ok(t, page, "/lock?name=l")
	contains(t, text, "What each server says", servers[3].Addr(), "a rest", "&lt;b&gt;mail", ">home<", "Force open")

	locktest.Equal(t, "a semaphore", get(page, "/semaphore?name=jobs").Code, http.StatusNotFound)
	one := newPage(t, direct[0], free)
	text = ok(t, one, "/lock?name=l")
	contains(t, text, "This is a part: the lock is of a quorum of 5 servers, and this page knows 1 of them")
	lacks(t, text, "Force open")
	target := "/free?" + url.Values{"name": {"l"}, "holder": {owner + ":1"}, "token": {"0"}}.Encode()
	refused := post(one, target, "l")
	locktest.Equal(t, "on one server", refused.Code, http.StatusConflict)
	contains(t, refused.Body.String(), "Nothing was freed")
	locktest.Equal(t, "it is there", direct[0].HExists(t.Context(), "l", owner+":1").Val(), true)

	servers[4].Freeze()
	t.Cleanup(servers[4].Thaw)
	redistest.Eventually(t, 20*time.Second, func() bool { text = ok(t, page, "/"); return strings.Contains(text, "does not count") }, "a server stands still")
	contains(t, text, "Server "+servers[4].Addr()+" does not count: it does not answer in time.")
	lacks(t, text, "Nobody gets a lock")
	servers[3].Kill()
	redistest.Eventually(t, 20*time.Second, func() bool { return strings.Contains(ok(t, page, "/"), servers[3].Addr()+" does not count") }, "another one is dead")
	freed := post(page, target, "l")
	locktest.Equal(t, "on all", freed.Code, http.StatusOK)
	contains(t, html.UnescapeString(freed.Body.String()), "Freed: ", "It is released on 3 of 5 servers; "+servers[3].Addr()+": ", "no majority has it any more")
	servers[2].Kill()
	redistest.Eventually(t, 20*time.Second, func() bool {
		return get(page, "/").Code == http.StatusServiceUnavailable
	}, "three are away")
	const nobody = "Nobody gets a lock: 2 of 5 servers answer and count, 3 are needed"
	text = get(page, "/").Body.String()
	contains(t, text, `<section class="alarm"><h1>`+nobody+"</h1>", "Server "+servers[3].Addr()+" does not count: it does not answer: connection refused.")
	lacks(t, text, "No lock looks stuck", "No lock was found")
	contains(t, get(page, "/?format=json").Body.String(), `"no_majority": "`+nobody+`"`)
	contains(t, ok(t, page, "/?format=fragment"), nobody) // an open page renews itself by it
	lost := get(page, "/lock?name=l")
	locktest.Equal(t, "of a lock", lost.Code, http.StatusServiceUnavailable)
	contains(t, lost.Body.String(), "2 of 5 servers answer and count, 3 are needed to tell who has the lock", "unknown")
}
