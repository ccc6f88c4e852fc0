package s3guard_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/fencelock/fencelock/guard"
	"github.com/fencelock/fencelock/guard/s3guard"
)

// Two holders of a lock, the first of which was paused: its write comes after the second one's, and is refused.
func Example() {
	ctx := context.Background()
	g, err := s3guard.New(&memory{}) // in a service: s3.NewFromConfig(...)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(g.Put(ctx, "bank", "account/42.json", 34, []byte(`{"balance": 110}`)))
	err = g.Put(ctx, "bank", "account/42.json", 33, []byte(`{"balance": 105}`))
	fmt.Println(errors.Is(err, guard.ErrStale), err)
	body, token, err := g.Get(ctx, "bank", "account/42.json")
	fmt.Println(string(body), token, err)
	// Output:
	// <nil>
	// true guard: stale fencing token of "bank/account/42.json": 33 was shown, and 34 has been seen
	// {"balance": 110} 34 <nil>
}

// A write that depends on what is there. The token is that of the context, in which lock.Do calls such a function.
func ExampleGuard_Update() {
	deposit := func(ctx context.Context, g *s3guard.Guard, amount int) error {
		return g.Update(ctx, "bank", "account/42.json", guard.Token(ctx, "account:42"), func(body []byte) ([]byte, error) {
			var account struct {
				Balance int `json:"balance"`
			}
			if body != nil {
				if err := json.Unmarshal(body, &account); err != nil {
					return nil, err
				}
			}
			account.Balance += amount
			return json.Marshal(account)
		}, func(in *s3.PutObjectInput) { in.ContentType = aws.String("application/json") })
	}
	_ = deposit
}

// memory is an object store for one process, with the conditions of PutObject.
type memory struct {
	mu      sync.Mutex
	objects map[string]object
}

type object struct {
	body []byte
	meta map[string]string
}

func (o object) etag() *string {
	sum := md5.Sum(o.body)
	return aws.String(`"` + hex.EncodeToString(sum[:]) + `"`)
}

func (m *memory) find(bucket, key *string) (object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, found := m.objects[*bucket+"/"+*key]
	if !found {
		return o, &types.NoSuchKey{}
	}
	return o, nil
}

func (m *memory) HeadObject(_ context.Context, in *s3.HeadObjectInput, _ ...func(*s3.Options)) (*s3.HeadObjectOutput, error) {
	o, err := m.find(in.Bucket, in.Key)
	return &s3.HeadObjectOutput{ETag: o.etag(), Metadata: o.meta}, err
}

func (m *memory) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	o, err := m.find(in.Bucket, in.Key)
	return &s3.GetObjectOutput{ETag: o.etag(), Metadata: o.meta, Body: io.NopCloser(bytes.NewReader(o.body))}, err
}

func (m *memory) PutObject(_ context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	name := *in.Bucket + "/" + *in.Key
	old, found := m.objects[name]
	if found && in.IfNoneMatch != nil || in.IfMatch != nil && (!found || *in.IfMatch != *old.etag()) {
		return nil, &smithy.GenericAPIError{Code: "PreconditionFailed"}
	}
	if m.objects == nil {
		m.objects = map[string]object{}
	}
	m.objects[name] = object{body, in.Metadata}
	return &s3.PutObjectOutput{}, nil
}
