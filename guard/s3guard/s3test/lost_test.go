package s3test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/fencelock/fencelock/guard/s3guard"
)

func putAt(t *testing.T, bucket, name, body string) {
	t.Helper()
	_, err := newClient(nil).PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &name, Body: strings.NewReader(body)})
	noError(t, err)
}

// answer is one that the server has not given.
func answer(r *http.Request, status int) *http.Response {
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}
}

// A write without an answer is told apart from one that has not happened. It is sent once, and may be called again.
func TestNoAnswer(t *testing.T) {
	type (
		request = *http.Request
		sending = func() (*http.Response, error)
	)
	for name, c := range map[string]struct {
		wire    func(r request, send sending) (*http.Response, error) // of the write
		unknown bool
		written bool
	}{
		"cut before": {func(request, sending) (*http.Response, error) { return nil, errCut }, true, false},
		"cut after": {func(_ request, send sending) (*http.Response, error) {
			_, err := send()
			return nil, errors.Join(errCut, err)
		}, true, true},
		"500 after": {func(r request, send sending) (*http.Response, error) { _, err := send(); return answer(r, 500), err }, true, true},
		"503":       {func(r request, _ sending) (*http.Response, error) { return answer(r, 503), nil }, true, false},
		"501":       {func(r request, _ sending) (*http.Response, error) { return answer(r, 501), nil }, false, false},
		"403":       {func(r request, _ sending) (*http.Response, error) { return answer(r, 403), nil }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			bucket := newBucket(t)
			writes := 0
			g := newGuard(t, func(r request, send sending) (*http.Response, error) {
				if r.Method != http.MethodPut {
					return send()
				}
				writes++
				return c.wire(r, send)
			})
			err := g.Put(t.Context(), bucket, key, 5, []byte("x"))
			if err == nil || errors.Is(err, s3guard.ErrUnknown) != c.unknown || !strings.Contains(err.Error(), bucket+"/"+key) {
				t.Errorf("error %v, want that it is ErrUnknown: %v", err, c.unknown)
			}
			if writes != 1 {
				t.Errorf("%d writes were sent", writes)
			}
			if c.written {
				has(t, bucket, "x", 5)
			} else {
				has(t, bucket, "", 0)
			}
			noError(t, newGuard(t, nil).Put(t.Context(), bucket, key, 5, []byte("x")))
			has(t, bucket, "x", 5)
		})
	}
}

// An error before the write is sent is a certain no.
func TestNotSent(t *testing.T) {
	bucket := newBucket(t)
	ctx := t.Context()
	once := func(o *s3.Options) { o.RetryMaxAttempts = 1 }
	away := newClient(func(*http.Request, func() (*http.Response, error)) (*http.Response, error) { return nil, errCut })
	nobody := s3.New(away.Options(), once, func(o *s3.Options) {
		o.Credentials = aws.AnonymousCredentials{}
		o.BaseEndpoint = aws.String("http://127.0.0.1:1")
		o.HTTPClient = &http.Client{}
	})
	unsigned := s3.New(newClient(nil).Options(), once, func(o *s3.Options) {
		credentials, n := o.Credentials, 0
		o.Credentials = aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
			if n++; n > 1 { // the look had some
				return aws.Credentials{}, errCut
			}
			return credentials.Retrieve(ctx)
		})
	})
	for name, client := range map[string]s3guard.Client{"look cut": s3.New(away.Options(), once), "no server": nobody, "look, and no server": lookedUp{nobody, newClient(nil)}, "no credentials": unsigned} {
		g, err := s3guard.New(client)
		noError(t, err)
		err = g.Put(ctx, bucket, key, 5, []byte("x"))
		if err == nil || errors.Is(err, s3guard.ErrUnknown) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	g := newGuard(t, nil)
	if err := g.Put(ctx, "absent-bucket", key, 5, nil); err == nil || errors.Is(err, s3guard.ErrUnknown) {
		t.Errorf("no bucket: error %v", err)
	}
	if _, _, err := g.Get(ctx, "absent-bucket", key); err == nil {
		t.Error("an object of no bucket")
	}
	has(t, bucket, "", 0)

	noTag := newGuard(t, func(_ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		response, err := send()
		if err == nil {
			response.Header.Del("ETag")
		}
		return response, err
	})
	put(t, bucket, "x", nil)
	if err := noTag.Put(ctx, bucket, key, 5, nil); err == nil || !strings.Contains(err.Error(), "no ETag") {
		t.Errorf("error %v", err)
	}
}

// lookedUp writes by one client and looks by another.
type lookedUp struct {
	s3guard.Client
	look *s3.Client
}

func (c lookedUp) HeadObject(ctx context.Context, in *s3.HeadObjectInput, opts ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	return c.look.HeadObject(ctx, in, opts...)
}

// A context that ends before the write is sent is a certain no; one that ends meanwhile is not.
func TestContextEnds(t *testing.T) {
	lost := errors.New("lock lost")
	for _, at := range []string{http.MethodHead, http.MethodPut} {
		bucket := newBucket(t)
		ctx, cancel := context.WithCancelCause(t.Context())
		g := newGuard(t, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
			response, err := send()
			if r.Method == at {
				cancel(lost)
			}
			if r.Method == http.MethodPut {
				return nil, errors.Join(ctx.Err(), err)
			}
			return response, err
		})
		err := g.Put(ctx, bucket, key, 5, []byte("x"))
		if !errors.Is(err, context.Canceled) || errors.Is(err, s3guard.ErrUnknown) != (at == http.MethodPut) {
			t.Errorf("%s: error %v", at, err)
		}
	}
}

// An object that somebody deletes between the look and the write is made anew.
func TestDeletedMeanwhile(t *testing.T) {
	bucket := newBucket(t)
	put(t, bucket, "x", nil)
	deleted := false
	g := newGuard(t, func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if r.Method == http.MethodPut && !deleted {
			deleted = true
			_, err := newClient(nil).DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: &bucket, Key: aws.String(key)})
			noError(t, err)
		}
		return send()
	})
	noError(t, g.Put(t.Context(), bucket, key, 5, []byte("y")))
	has(t, bucket, "y", 5)
}
