package guard_test

import (
	"errors"
	"fmt"

	"github.com/fencelock/fencelock/guard"
)

// A service that owns its data in one process checks the token that came with a request, and writes, in one step. Do is
// alone with its account; the map, which others read at the same time, does not change.
func ExampleMemory() {
	accounts := map[string]*struct{ balance int }{"account:42": {100}}
	marks := guard.NewMemory() // one for the data
	deposit := func(account string, token int64, amount int) error {
		return marks.Do(account, token, func() error {
			accounts[account].balance += amount
			return nil
		})
	}

	fmt.Println(deposit("account:42", 33, 10))
	fmt.Println(deposit("account:42", 34, 10)) // the next holder
	err := deposit("account:42", 33, 10)       // the first one again, after a pause
	fmt.Println(errors.Is(err, guard.ErrStale), accounts["account:42"].balance)
	// Output:
	// <nil>
	// <nil>
	// true 120
}
