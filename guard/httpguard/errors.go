package httpguard

import "errors"

// ErrRequired tells that a request has no token of a resource that it would write. From Token, Handler's answers and
// ResponseError. It is a mistake in the caller's program.
var ErrRequired = errors.New("a fencing token is required")

// ErrMalformed tells that the header of a request cannot be read. From Token, Tokens, SetToken, Handler's answers and
// ResponseError. It is a mistake in the caller's program, or in something between the two.
var ErrMalformed = errors.New("malformed " + Header)

// fieldError is one of both with what is wrong in words that may go to the other side.
type fieldError struct {
	is     error
	detail string
}

func (e *fieldError) Error() string { return "httpguard: " + e.is.Error() + ": " + e.detail }
func (e *fieldError) Unwrap() error { return e.is }
