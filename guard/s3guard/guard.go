package s3guard

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/observe/locktrace"
)

// metadata is the key of an object's token in its user metadata.
const metadata = "fencelock-token"

// Client is what a guard needs of an *s3.Client. One that is made around another one passes the functions for s3.Options on.
type Client interface {
	HeadObject(ctx context.Context, in *s3.HeadObjectInput, opts ...func(*s3.Options)) (*s3.HeadObjectOutput, error)
	GetObject(ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

// Guard writes objects under tokens. It may be used by any number of goroutines.
type Guard struct {
	client Client
	trace  *locktrace.Trace
}

// Option changes a default of New.
type Option func(*Guard)

// WithTrace makes the guard call t.WriteRefused for each write that it refuses because of a newer token. The caller gets the error all
// the same.
func WithTrace(t *locktrace.Trace) Option { return func(g *Guard) { g.trace = t } }

// New returns a guard. It asks no one; an error is one in the arguments.
func New(client Client, opts ...Option) (*Guard, error) {
	if client == nil {
		return nil, errors.New("s3guard: no client: pass an *s3.Client")
	}
	g := &Guard{client: client}
	for _, opt := range opts {
		if opt != nil {
			opt(g)
		}
	}
	return g, nil
}

// Put replaces the object, or creates it, if no larger token was accepted for it, and remembers the token. Each change is called on the
// request, for a content type and the like; bucket, key, body and condition are the guard's. What body depends on must have been read under
// the same token, by Update: Put looks at no content.
//
// Errors: guard.ErrStale and guard.ErrToken, this call has written nothing; [ErrUnknown], it may have done so, or may do so later; what S3,
// the connection or the context says: nothing was written.
func (g *Guard) Put(ctx context.Context, bucket, key string, token int64, body []byte, change ...func(*s3.PutObjectInput)) error {
	t := target{g, bucket, key, token}
	err := t.write(ctx, t.head, func([]byte) ([]byte, error) { return body, nil }, change)
	return t.wrap("put", err)
}

// Update is Put of what fn makes of the body that is there, nil where no object is. Nobody writes between the two: where somebody does, fn
// is called again, with the new body. An error of fn is returned as it is; nothing was written then. Otherwise the errors are those of
// Put. After ErrUnknown call Update again, with an fn that finds in the body whether it is done, unless it is safe to do twice.
func (g *Guard) Update(ctx context.Context, bucket, key string, token int64, fn func(body []byte) ([]byte, error), change ...func(*s3.PutObjectInput)) error {
	t := target{g, bucket, key, token}
	if fn == nil {
		return t.wrap("update", errors.New("no function: pass one that returns the new body"))
	}
	var failed error
	err := t.write(ctx, t.get, func(old []byte) (body []byte, err error) {
		body, failed = fn(old)
		return body, failed
	}, change)
	if failed != nil {
		return failed
	}
	return t.wrap("update", err)
}

// Get returns the body as Put got it, and the largest token accepted, which is 0 where no guard has written the object. Where there is none
// the body is nil. It shows no token: a write that depends on the body is an Update. Errors are those of S3, the connection or the context.
func (g *Guard) Get(ctx context.Context, bucket, key string) (body []byte, token int64, err error) {
	t := target{g, bucket, key, 0}
	if err := t.begin(ctx); err != nil {
		return nil, 0, t.wrap("get", err)
	}
	found, err := t.get(ctx)
	return found.body, found.token, t.wrap("get", err)
}

// target is an object that is to be written, and under which token.
type target struct {
	*Guard
	bucket, key string
	token       int64
}

func (t target) resource() string { return t.bucket + "/" + t.key }

func (t target) wrap(op string, err error) error {
	if err == nil || errors.Is(err, guard.ErrStale) || errors.Is(err, guard.ErrToken) {
		return err
	}
	return fmt.Errorf("s3guard: %s %q: %w", op, t.resource(), err)
}

// begin finds what is wrong before anything is sent.
func (t target) begin(ctx context.Context) error {
	switch {
	case ctx == nil:
		return errors.New("ctx is nil: pass the caller's, or context.Background() where there is none")
	case t.bucket == "" || t.key == "":
		return errors.New("name a bucket and a key")
	case ctx.Err() == nil:
		return nil
	}
	err := ctx.Err()
	if cause := context.Cause(ctx); !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return fmt.Errorf("nothing was written: %w", err)
}

// The pauses after a write that came behind another one's, each of them by chance up to
const (
	firstPause   = 10 * time.Millisecond
	longestPause = time.Second
)

// version is an object as it was found.
type version struct {
	etag  *string // nil: there is none
	token int64
	body  []byte // from get
}

// write looks, makes the new body, and replaces what it has looked at, until nobody has come between.
func (t target) write(ctx context.Context, look func(context.Context) (version, error), body func(old []byte) ([]byte, error), change []func(*s3.PutObjectInput)) error {
	if err := guard.Check(t.resource(), t.token); err != nil {
		return err
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		if err := t.begin(ctx); err != nil {
			return err
		}
		found, err := look(ctx)
		if err != nil {
			return err
		}
		if found.token > t.token {
			t.trace.Refused(locktrace.WriteRefused{Context: ctx, Guard: "s3", Resource: t.resource(), Token: t.token, Seen: found.token})
			return &guard.StaleError{Resource: t.resource(), Token: t.token, Seen: found.token}
		}
		content, err := body(found.body)
		if err != nil {
			return err
		}
		if err := t.begin(ctx); err != nil {
			return err
		}
		if err := t.put(ctx, found, content, change); !changed(err) {
			return err
		}
		select {
		case <-time.After(rand.N(pause)):
		case <-ctx.Done():
		}
	}
}

func (t target) head(ctx context.Context) (version, error) {
	out, err := t.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &t.bucket, Key: &t.key})
	if absent(err) {
		return version{}, nil
	}
	if err != nil {
		return version{}, err
	}
	return versionOf(out.ETag, out.Metadata, nil)
}

func (t target) get(ctx context.Context) (version, error) {
	out, err := t.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &t.bucket, Key: &t.key})
	if absent(err) {
		return version{}, nil
	}
	if err != nil {
		return version{}, err
	}
	defer out.Body.Close()
	body, err := io.ReadAll(out.Body)
	if err != nil {
		return version{}, err
	}
	return versionOf(out.ETag, out.Metadata, body)
}

func versionOf(etag *string, meta map[string]string, body []byte) (version, error) {
	if aws.ToString(etag) == "" {
		return version{}, errors.New("the store names no ETag, without which nobody can replace this very object")
	}
	text, guarded := meta[metadata]
	if !guarded {
		return version{etag, 0, body}, nil
	}
	token, err := strconv.ParseInt(text, 10, 64)
	if err != nil || token < 1 {
		return version{}, fmt.Errorf("its metadata %s is %q, which is no token", metadata, text)
	}
	return version{etag, token, unstamp(body)}, nil
}
