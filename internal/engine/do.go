package engine

import "errors"

// ErrNothingToDo is the error of Do without a function.
var ErrNothingToDo = errors.New("fn is nil: there is nothing to do")

// Do runs fn for a caller that has taken a lock, and then unlock: also where fn panics, and the
// panic goes on. It returns fn's error joined with unlock's.
func Do(fn, unlock func() error) (err error) {
	defer func() { err = errors.Join(err, unlock()) }()
	return fn()
}
