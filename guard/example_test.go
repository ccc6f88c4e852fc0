package guard_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/fencelock/fencelock/fenced"
	"github.com/fencelock/fencelock/guard"
)

// A service that owns its data in one process checks the token that came with a request, and writes, in one step. Do is
// alone with its account; the map, which others read at the same time, does not change.
func ExampleMemory() {
	accounts := map[string]*struct{ balance int }{"account:42": {100}}
	marks := guard.NewMemory() // one for the data
	deposit := func(ctx context.Context, account string, token int64, amount int) error {
		return marks.Do(ctx, account, token, func(context.Context) error {
			accounts[account].balance += amount
			return nil
		})
	}

	ctx := context.Background()
	fmt.Println(deposit(ctx, "account:42", 33, 10))
	fmt.Println(deposit(ctx, "account:42", 34, 10)) // the next holder
	err := deposit(ctx, "account:42", 33, 10)       // the first one again, after a pause
	fmt.Println(errors.Is(err, guard.ErrStale), accounts["account:42"].balance)
	// Output:
	// <nil>
	// <nil>
	// true 120
}

// Code deep down has only its context: the token is that of the hold it runs under, or of the request that it serves.
func ExampleToken() {
	marks := guard.NewMemory()
	save := func(ctx context.Context) error {
		return marks.Check(ctx, "account:42", guard.Token(ctx, "account:42"))
	}
	ctx := context.Background()
	fmt.Println(save(fenced.ContextWithToken(ctx, "account:42", 33))) // or a context of lock.Do
	fmt.Println(save(fenced.ContextWithToken(ctx, "account:43", 33)))
	// Output:
	// <nil>
	// guard: "account:42": a fencing token is 1 or more, not 0: pass the one that the lock gave
}
