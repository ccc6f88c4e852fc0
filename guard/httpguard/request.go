package httpguard

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/fencelock/fencelock/guard"
)

// Header is the name of the header that tokens travel in.
const Header = "Fencing-Token"

// SetToken puts the resource's token on the request, in place of an older one of the same resource; those of others stay.
// The error is guard.ErrToken for a token that is none, and ErrMalformed if the request's header is; a name that is not
// UTF-8 cannot travel. The request is then as it was.
func SetToken(req *http.Request, resource string, token int64) error {
	if err := guard.Check(resource, token); err != nil {
		return err
	}
	if !utf8.ValidString(resource) {
		return fmt.Errorf("httpguard: the resource %q is not UTF-8: give it another name", resource)
	}
	tokens, err := Tokens(req)
	if err != nil {
		return err
	}
	tokens[resource] = token
	if req.Header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set(Header, format(tokens))
	return nil
}

// Token returns the resource's token of the request. The errors are ErrRequired, where there is none, and ErrMalformed;
// give them to Error.
func Token(r *http.Request, resource string) (int64, error) {
	tokens, err := Tokens(r)
	if err != nil {
		return 0, err
	}
	return one(tokens, resource)
}

// Tokens returns all tokens of the request by their resources, none where it has no header. The error is ErrMalformed;
// give it to Error.
func Tokens(r *http.Request) (map[string]int64, error) { return parse(r.Header.Values(Header)) }

func one(tokens map[string]int64, resource string) (int64, error) {
	token, ok := tokens[resource]
	if !ok {
		return 0, &fieldError{ErrRequired, fmt.Sprintf("send the token of %q in the header %s", resource, Header)}
	}
	return token, nil
}
