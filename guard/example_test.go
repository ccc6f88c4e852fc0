package guard_test

import (
	"errors"
	"fmt"

	"github.com/fencelock/fencelock/guard"
)

// A service that owns its data in one process checks the token that came with a request, and writes, in one step.
func ExampleMemory() {
	balances := map[string]int{"account:42": 100}
	marks := guard.NewMemory() // one for the data
	deposit := func(account string, token int64, amount int) error {
		return marks.Do(account, token, func() error {
			balances[account] += amount
			return nil
		})
	}

	fmt.Println(deposit("account:42", 33, 10))
	fmt.Println(deposit("account:42", 34, 10)) // the next holder
	err := deposit("account:42", 33, 10)       // the first one again, after a pause
	fmt.Println(errors.Is(err, guard.ErrStale), balances["account:42"])
	// Output:
	// <nil>
	// <nil>
	// true 120
}
