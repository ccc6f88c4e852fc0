package sqlguard_test

import (
	"errors"
	"fmt"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/sqlguard"
)

// The table of the marks, for those who keep their schema in migrations.
func ExampleGuard_Schema() {
	g, err := sqlguard.New(sqlguard.PostgreSQL, sqlguard.WithTable("bank.marks"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.Schema())
	// Output:
	// CREATE TABLE IF NOT EXISTS "bank"."marks" (resource bytea PRIMARY KEY, token bigint NOT NULL)
}

// exampleError is an error as drivers of PostgreSQL have it.
type exampleError struct{ state string }

func (e *exampleError) Error() string    { return "the database says " + e.state }
func (e *exampleError) SQLState() string { return e.state }

// A deadlock is tried again, from the beginning and with the same token. A stale token is not: somebody else has the lock.
func ExampleRetryable() {
	answers := []error{&exampleError{"40P01"}, &exampleError{"40001"}, nil}
	write := func() error { // in a service: g.Do
		err := answers[0]
		answers = answers[1:]
		return err
	}
	tries := 1
	err := write()
	for sqlguard.Retryable(err) {
		tries++
		err = write()
	}
	fmt.Println(tries, err)
	fmt.Println(sqlguard.Retryable(fmt.Errorf("deposit: %w", guard.ErrStale)), sqlguard.Retryable(errors.New("no such table")))
	// Output:
	// 3 <nil>
	// false false
}
