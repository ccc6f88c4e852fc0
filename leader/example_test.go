package leader_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/leader"
	"github.com/fencelock/fencelock/rlock"
)

// A leader that is frozen does not notice that another one leads by now. When it goes on it writes once more, and storage that checks the token
// of the term refuses that.
func Example() {
	server := miniredis.NewMiniRedis() // the redis-server of all processes
	if err := server.Start(); err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	campaign := func() (*leader.Term, *rlock.Client) { // as each process does
		client, err := rlock.New(rdb)
		if err != nil {
			log.Fatal(err)
		}
		election, err := leader.New(fenced.NewLock(client, "scheduler", fenced.WithClockFloor()))
		if err != nil {
			log.Fatal(err)
		}
		term, err := election.Campaign(context.Background())
		if err != nil {
			log.Fatal(err)
		}
		return term, client
	}
	ctx := context.Background()
	storage := guard.NewMemory() // in a database: package guard/sqlguard
	write := func(who string, term *leader.Term) {
		err := storage.Do(ctx, "jobs", term.Token(), func(context.Context) error {
			fmt.Println(who, "writes")
			return nil
		})
		if errors.Is(err, guard.ErrStale) {
			fmt.Println(who, "is refused")
		}
	}

	frozen, client := campaign()
	defer client.Close()
	write("the first leader", frozen)
	server.Del("scheduler") // its process stands still, and its lease runs out

	next, client := campaign()
	defer client.Close()
	write("the next leader", next)
	write("the first leader", frozen) // it goes on

	// Output:
	// the first leader writes
	// the next leader writes
	// the first leader is refused
}

// A process that sends requests to the leader is told who that is. The name is that of rlock.WithPresence.
func ExampleWatch() {
	server := miniredis.NewMiniRedis() // the redis-server of all processes
	if err := server.Start(); err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	client, err := rlock.New(rdb, rlock.WithPresence("10.0.0.7:8080"))
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	leaders, err := leader.Watch(ctx, client, "scheduler")
	if err != nil {
		log.Fatal(err)
	}
	tell := func(l leader.Leader) {
		if l.Client == "" {
			fmt.Println("nobody leads")
		} else if l.Name != "" { // otherwise the name comes with the next value
			fmt.Println("requests go to", l.Name)
		}
	}
	tell(<-leaders)

	election, err := leader.New(fenced.NewLock(client, "scheduler"))
	if err != nil {
		log.Fatal(err)
	}
	go election.Run(ctx, func(ctx context.Context, term *leader.Term) error {
		<-ctx.Done()
		return nil
	})
	for l := range leaders {
		if tell(l); l.Name != "" {
			break
		}
	}

	// Output:
	// nobody leads
	// requests go to 10.0.0.7:8080
}
