package sqlguard

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fencelock/fencelock/guard"
)

type stateError string

func (e stateError) Error() string    { return "broken" }
func (e stateError) SQLState() string { return string(e) }

// As the drivers for PostgreSQL say it. Those of the other databases are asked in sqltest, with real errors.
func TestRetryable(t *testing.T) {
	for state, want := range map[string]bool{"40001": true, "40P01": true, "55P03": true, "23505": false, "40002": false, "": false} {
		err := stateError(state)
		for _, err := range []error{err, &err, fmt.Errorf("x: %w", err), errors.Join(errors.New("x"), fmt.Errorf("%w: %w", ErrUnknown, err))} {
			if Retryable(err) != want {
				t.Errorf("%q in a %T: want %v", state, err, want)
			}
		}
	}
	for _, err := range []error{nil, errors.New("40001"), guard.ErrStale, ErrUnknown, codeMethod(5), codeField{5, 5}, (*stateError)(nil), (*guard.StaleError)(nil)} {
		if Retryable(err) {
			t.Errorf("a %T is retryable", err)
		}
	}
}

type (
	codeMethod uint8
	codeField  struct{ Code, ExtendedCode int }
	numbered   struct{ Number uint16 }
)

func (codeMethod) Error() string { return "broken" }
func (c codeMethod) Code() uint8 { return uint8(c) }
func (codeField) Error() string  { return "broken" }
func (*numbered) Error() string  { return "broken" }

// The number of an error is where its driver keeps it: a method, a field, or nowhere.
func TestNumberOfAnError(t *testing.T) {
	for _, c := range []struct {
		err  error
		name string
		want int64
	}{
		{codeMethod(5), "Code", 5}, {codeField{6, 0}, "Code", 6}, {&codeField{6, 0}, "Code", 6}, {&numbered{1213}, "Number", 1213}, {(*numbered)(nil), "Number", 0},
		{codeField{6, 0}, "Number", 0}, {errors.New("x"), "Code", 0}, {stateError("x"), "Code", 0}, {stateError("x"), "Error", 0},
	} {
		if got := number(c.err, c.name); got != c.want {
			t.Errorf("%s of %#v: %d, want %d", c.name, c.err, got, c.want)
		}
	}
}
