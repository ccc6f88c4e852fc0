// Package httpguard takes fencing tokens over HTTP, so that a service behind an API can be fenced: the caller has the
// lock, the service has the storage.
//
// The caller puts the token on the request, and finds a refusal in the response:
//
//	err := httpguard.SetToken(req, "account:42", token)
//	resp, err := http.DefaultClient.Do(req)
//	if err := httpguard.ResponseError(resp); errors.Is(err, guard.ErrStale) { ... } // this request has written nothing
//
// The service takes it off with [Token], gives it to the guard of its storage (redisguard, sqlguard), which checks it in
// the step that writes, and passes what that says to [Error]. A service that keeps its data in its own memory wraps its
// handlers with [Handler]: check and handler are one step.
//
// The package knows tokens, not locks. With package fenced, fenced.TokenFrom gives the caller's token of a context, and
// fenced.ContextWithToken puts a received one into the context of the request, for code deep down.
//
// # The header
//
// Tokens travel with the names of what they are for, in a Structured Field (RFC 9651), a List of Strings with one
// Parameter each:
//
//	Fencing-Token: "33";resource="account:42", "1790000000000000";resource=%"caf%c3%a9:7"
//
// The token is a String because an Integer of RFC 9651 ends at 15 digits, and a token at 2^63-1. The name is a String
// where it is printable ASCII and a Display String otherwise; both are taken for either. Several lines of the header are
// one list, in any order. Everything else is refused rather than guessed at: other parameters, a second token of the
// same resource, a token of 0, with a leading zero or a sign.
//
// # The answers
//
// Refusals are problem documents (RFC 9457, application/problem+json), told apart by their type:
//
//	409  StaleToken      a newer holder has written; with resource, token, seen
//	428  TokenRequired   no token of the resource came
//	400  MalformedToken  the header cannot be read
//
// 409 is about this copy of the request alone. An earlier copy, whose answer was lost on its way to a caller or a proxy that then
// sent the request again, may have been written before somebody else came. Where requests are repeated the service needs an
// idempotency key: it remembers the key together with the write, and answers a repeat with what it answered before.
//
// The figures are strings, as in the header. The document is in the header Fencing-Problem too, in ASCII, because the
// answer to HEAD has no body.
//
// 428 is for a request that has to be conditional and is not (RFC 6585, section 3), which is so of one without its token. A
// stale one is 409 rather than 412, although 412 is what a false condition gives, for three reasons of RFC 9110. The
// conditions of section 13 are about the state of the target, and are not looked at where the answer would be an error
// without them (13.2.1); a stale token is refused before anything is read, and names resources that need not be the target.
// Who gets 412 takes it for the If-Match that was sent, fetches the target, and sends the request again: with the same token,
// which is refused for ever, while a service may have both, ETags and tokens. And 409 (15.5.10) is a conflict that the caller
// can resolve by what the answer says, here by another acquire.
//
// # Caches
//
// A read that a cache answers shows no token to the storage: an older holder can then still write between the read and
// the write that depends on it. Handler sets Cache-Control: no-store and Vary: Fencing-Token on its answers; where a
// service calls Token itself it has to do the same.
//
// # Trust
//
// A token is believed. Whoever may send one can send a very large one, and shut out everybody else: let in only those who
// may write, as without tokens.
package httpguard
