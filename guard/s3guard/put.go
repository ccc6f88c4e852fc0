package s3guard

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
)

// ErrUnknown tells that the outcome is not known here: the request was sent, and no answer came, or one of a server that failed. Its cause
// is wrapped too. A late copy may still arrive; the next write of the object shuts it out. So call Put or Update again with the same token.
var ErrUnknown = errors.New("the write may or may not have happened")

// put replaces this version of the object.
func (t target) put(ctx context.Context, found version, body []byte, change []func(*s3.PutObjectInput)) error {
	in := &s3.PutObjectInput{}
	for _, change := range change {
		if change != nil {
			change(in)
		}
	}
	in.Bucket, in.Key, in.Body = &t.bucket, &t.key, bytes.NewReader(stamp(body))
	in.Metadata = maps.Clone(in.Metadata)
	if in.Metadata == nil {
		in.Metadata = map[string]string{}
	}
	in.Metadata[metadata] = strconv.FormatInt(t.token, 10)
	in.IfMatch, in.IfNoneMatch = found.etag, nil
	if found.etag == nil {
		in.IfNoneMatch = aws.String("*")
	}
	var seen sender
	_, err := t.client.PutObject(ctx, in, func(o *s3.Options) {
		o.Retryer = aws.NopRetryer{} // of two attempts the second would be refused because of the first
		if o.HTTPClient != nil {
			seen.HTTPClient, o.HTTPClient = o.HTTPClient, &seen
		}
	})
	if err != nil && seen.unanswered(err) {
		return fmt.Errorf("%w: %w", ErrUnknown, err)
	}
	return err
}

// sender notes whether a request was sent.
type sender struct {
	s3.HTTPClient // nil where the client has not taken the options
	sent          bool
}

func (s *sender) Do(r *http.Request) (*http.Response, error) {
	s.sent = true
	return s.HTTPClient.Do(r)
}

// unanswered tells that after err nobody knows whether the object was, or will be, written.
func (s *sender) unanswered(err error) bool {
	var op *net.OpError
	switch status := statusOf(err); {
	case s.HTTPClient != nil && !s.sent, errors.As(err, &op) && op.Op == "dial":
		return false // it was not sent, or there was no connection to send it on
	case status >= 400 && status < 500, status == http.StatusNotImplemented, changed(err):
		return false // refused
	}
	return true
}

// statusOf is the status of the answer that err tells of, 0 if there was none.
func statusOf(err error) int {
	var answer interface{ HTTPStatusCode() int }
	if errors.As(err, &answer) {
		return answer.HTTPStatusCode()
	}
	return 0
}

func codeOf(err error) string {
	var said smithy.APIError
	if errors.As(err, &said) {
		return said.ErrorCode()
	}
	return ""
}

// changed tells that the object is not the one that was to be replaced, or that another write of it is under way.
func changed(err error) bool {
	switch codeOf(err) {
	case "PreconditionFailed", "ConditionalRequestConflict", "OperationAborted":
		return true
	case "NoSuchKey": // deleted meanwhile
		return true
	}
	return statusOf(err) == http.StatusPreconditionFailed
}

// absent tells that there is no object. Of a bucket that is not there HEAD says the same; the write finds out.
func absent(err error) bool {
	switch codeOf(err) {
	case "NoSuchKey", "NotFound":
		return true
	}
	return false
}

// stampSize is how many bytes stamp appends.
const stampSize = 64

// stamp returns the body with an end that no other write has, so that the ETag is of this write alone.
func stamp(body []byte) []byte {
	out := append(make([]byte, 0, len(body)+stampSize), body...)
	out = append(out, '\n')
	for bits := rand.Uint64(); len(out) < len(body)+stampSize; bits >>= 1 {
		out = append(out, " \t"[bits&1])
	}
	return out
}

// unstamp returns the body without its stamp, if it has one.
func unstamp(content []byte) []byte {
	body := content[:max(0, len(content)-stampSize)]
	end := content[len(body):]
	if len(end) < stampSize || end[0] != '\n' || len(bytes.Trim(end[1:], " \t")) > 0 {
		return content
	}
	return body
}
