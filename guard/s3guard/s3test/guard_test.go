package s3test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/s3guard"
	"github.com/fencelock/fencelock/observe/locktrace"
)

const key = "a/b.json"

func newGuard(t *testing.T, w wire, opts ...s3guard.Option) *s3guard.Guard {
	t.Helper()
	g, err := s3guard.New(newClient(w), opts...)
	noError(t, err)
	return g
}

// isStale requires the refusal with these figures.
func isStale(t *testing.T, err error, want guard.StaleError) {
	t.Helper()
	var stale *guard.StaleError
	if !errors.As(err, &stale) || *stale != want || !errors.Is(err, guard.ErrStale) || errors.Is(err, s3guard.ErrUnknown) {
		t.Errorf("error %v, want %v", err, &want)
	}
}

// has requires the body and the token of the object.
func has(t *testing.T, bucket, body string, token int64) {
	t.Helper()
	got, seen, err := newGuard(t, nil).Get(t.Context(), bucket, key)
	if err != nil || string(got) != body || seen != token {
		t.Errorf("the object is %q with %d, %v, want %q with %d", got, seen, err, body, token)
	}
}

// put writes as anybody does, past the guard.
func put(t *testing.T, bucket, body string, meta map[string]string) {
	t.Helper()
	_, err := newClient(nil).PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String(key), Body: strings.NewReader(body), Metadata: meta})
	noError(t, err)
}

// Inv4: a token is accepted when none larger was accepted for the object, up to the largest there is.
func TestInv4_Tokens(t *testing.T) {
	bucket, g := newBucket(t), newGuard(t, nil)
	has(t, bucket, "", 0)
	body, seen := "", int64(0)
	for i, token := range []int64{3, 3, 2, 4, 1, 4, 1<<53 + 1, 1 << 53, math.MaxInt64 - 1, math.MaxInt64, math.MaxInt64, math.MaxInt64 - 1, 1} {
		next := string(rune('a' + i))
		write := func() error { return g.Put(t.Context(), bucket, key, token, []byte(next)) }
		if i%2 == 1 {
			write = func() error {
				return g.Update(t.Context(), bucket, key, token, func(old []byte) ([]byte, error) {
					if string(old) != body {
						t.Errorf("Update gives %q, want %q", old, body)
					}
					return []byte(next), nil
				})
			}
		}
		if err := write(); token < seen {
			isStale(t, err, guard.StaleError{Resource: bucket + "/" + key, Token: token, Seen: seen})
		} else {
			noError(t, err)
			body, seen = next, token
		}
		has(t, bucket, body, seen)
	}
	noError(t, g.Put(t.Context(), bucket, "other", 1, nil)) // another object has another token
}

// A body comes back as it was; others read it with an end of white space, by which no two writes have one ETag.
func TestBodies(t *testing.T) {
	bucket, g, client := newBucket(t), newGuard(t, nil), newClient(nil)
	for _, body := range []string{"", "\n", "\x00\xff", strings.Repeat(" ", 200), "\n" + strings.Repeat("\t", 63), strings.Repeat("x", 64), strings.Repeat("long", 1<<20)} {
		noError(t, g.Put(t.Context(), bucket, key, 5, []byte(body)))
		has(t, bucket, body, 5)
	}
	etags := map[string]bool{}
	for range 3 {
		mine := map[string]string{"mine": "1"}
		noError(t, g.Put(t.Context(), bucket, key, 6, []byte(`{"n": 7}`), nil, func(in *s3.PutObjectInput) { in.ContentType, in.Metadata = aws.String("application/json"), mine }))
		out, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: aws.String(key)})
		noError(t, err)
		content, err := io.ReadAll(out.Body)
		noError(t, err)
		var v struct{ N int }
		if err := json.Unmarshal(content, &v); err != nil || v.N != 7 || len(content) != 8+64 || *out.ContentType != "application/json" {
			t.Errorf("%v, read %+v of %q", err, v, content)
		}
		if want := map[string]string{"mine": "1", "fencelock-token": "6"}; !maps.Equal(out.Metadata, want) || len(mine) != 1 {
			t.Errorf("metadata %v, want %v; the caller's is %v", out.Metadata, want, mine)
		}
		etags[*out.ETag] = true
	}
	if len(etags) != 3 {
		t.Errorf("%d ETags of three writes", len(etags))
	}
}

// An object that others have written counts as token 0; one whose metadata is no token is no guard's, and stays.
func TestObjectsOfOthers(t *testing.T) {
	bucket, g := newBucket(t), newGuard(t, nil)
	raw := "raw\n" + strings.Repeat(" ", 63)
	put(t, bucket, raw, nil)
	has(t, bucket, raw, 0)
	noError(t, g.Update(t.Context(), bucket, key, 1, func(old []byte) ([]byte, error) { return append(old, '!'), nil }))
	has(t, bucket, raw+"!", 1)
	put(t, bucket, "by hand", map[string]string{"fencelock-token": "9"})
	has(t, bucket, "by hand", 9)
	for _, token := range []string{"x", "0", "-1", "9223372036854775808"} {
		put(t, bucket, "odd", map[string]string{"fencelock-token": token})
		err := g.Put(t.Context(), bucket, key, math.MaxInt64, nil)
		if err == nil || errors.Is(err, s3guard.ErrUnknown) || !strings.Contains(err.Error(), "no token") {
			t.Errorf("token %q: error %v", token, err)
		}
	}
}

// What Update's function says, and a body that changes under it.
func TestUpdate(t *testing.T) {
	bucket, g := newBucket(t), newGuard(t, nil)
	failed := errors.New("failed")
	if err := g.Update(t.Context(), bucket, key, 5, func(body []byte) ([]byte, error) { return []byte("x"), failed }); err != failed {
		t.Errorf("error %v", err)
	}
	var seen []string
	update := func() error {
		return g.Update(t.Context(), bucket, key, 5, func(old []byte) ([]byte, error) {
			seen = append(seen, map[bool]string{true: "none", false: string(old)}[old == nil])
			if len(seen) < 3 {
				noError(t, g.Put(t.Context(), bucket, key, 5, nil))
			}
			return append(old, 'x'), nil
		})
	}
	noError(t, update())
	has(t, bucket, "x", 5)
	noError(t, update())
	has(t, bucket, "xx", 5)
	if got := strings.Join(seen, ","); got != "none,,,x" {
		t.Errorf("Update has given %q", got)
	}
	// A newer holder comes while the function runs.
	err := g.Update(t.Context(), bucket, key, 5, func(old []byte) ([]byte, error) {
		if string(old) == "y" {
			return nil, errors.New("called with what a newer holder has written")
		}
		return nil, g.Put(t.Context(), bucket, key, 6, []byte("y"))
	})
	isStale(t, err, guard.StaleError{Resource: bucket + "/" + key, Token: 5, Seen: 6})
	has(t, bucket, "y", 6)
}

// Bad arguments fail before the store is asked, and a refusal is told to the trace.
func TestArgumentsAndTrace(t *testing.T) {
	var told []locktrace.WriteRefused
	bucket := newBucket(t)
	never := newGuard(t, func(*http.Request, func() (*http.Response, error)) (*http.Response, error) {
		t.Error("the store was asked")
		return nil, errCut
	})
	ctx := t.Context()
	over, cancel := context.WithCancelCause(ctx)
	lost := errors.New("lock lost")
	cancel(lost)
	var none context.Context
	get := func(ctx context.Context, bucket string) error { _, _, err := never.Get(ctx, bucket, key); return err }
	for _, c := range []struct {
		err  error
		want string
	}{
		{never.Put(ctx, bucket, key, guard.Token(ctx, "r"), nil), "1 or more, not 0"},
		{never.Put(ctx, bucket, key, -1, nil), "1 or more, not -1"},
		{never.Put(ctx, "", key, 1, nil), "name a bucket"},
		{never.Put(ctx, bucket, "", 1, nil), "name a bucket and a key"},
		{never.Update(ctx, bucket, key, 1, nil), "no function"},
		{never.Put(none, bucket, key, 1, nil), "ctx is nil"},
		{never.Put(over, bucket, key, 1, nil), "nothing was written: context canceled: lock lost"},
		{get(over, bucket), "lock lost"},
		{get(ctx, ""), "name a bucket"},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.want) || errors.Is(c.err, guard.ErrToken) != strings.Contains(c.want, "1 or more") || errors.Is(c.err, s3guard.ErrUnknown) {
			t.Errorf("error %v, want %q", c.err, c.want)
		}
	}
	if _, err := s3guard.New(nil); err == nil {
		t.Error("a guard without a client")
	}

	g := newGuard(t, nil, nil, s3guard.WithTrace(&locktrace.Trace{WriteRefused: func(e locktrace.WriteRefused) { told = append(told, e) }}))
	noError(t, g.Put(ctx, bucket, key, 7, nil))
	want := guard.StaleError{Resource: bucket + "/" + key, Token: 6, Seen: 7}
	isStale(t, g.Put(ctx, bucket, key, 6, nil), want)
	if len(told) != 1 || told[0] != (locktrace.WriteRefused{Context: ctx, Guard: "s3", Resource: want.Resource, Token: 6, Seen: 7}) {
		t.Errorf("told %+v", told)
	}
}
