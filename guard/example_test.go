package guard_test

import (
	"context"
	"errors"
	"fmt"

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
