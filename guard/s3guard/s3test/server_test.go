package s3test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// socket is that of the server, which TestMain starts, once for all tests.
var socket string

func TestMain(m *testing.M) {
	runtime.LockOSThread() // for as long as the server runs: the kernel ends it with this thread
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "s3test") // short: a socket's path has 107 bytes at most
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(dir)
	stop, err := serve(dir)
	if err != nil {
		fmt.Println("no S3 server:", err)
		return 1
	}
	defer stop()
	return m.Run()
}

// serve builds the server, starts it, and waits until it answers. The metadata is in files: not each file system has room for it.
func serve(dir string) (stop func(), err error) {
	build := exec.Command("go", "tool", "-n", "versitygw")
	build.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	build.Stderr = os.Stderr
	path, err := build.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", build, err)
	}
	socket = filepath.Join(dir, "sock")
	for _, name := range []string{"objects", "meta"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	server := exec.Command(strings.TrimSpace(string(path)), "--port", socket, "--access", "user", "--secret", "secret", "--keep-alive", "--quiet",
		"posix", "--sidecar", filepath.Join(dir, "meta"), filepath.Join(dir, "objects"))
	server.SysProcAttr = endWithParent()
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		return nil, err
	}
	exited := make(chan error, 1)
	go func() { exited <- server.Wait() }()
	stop = func() {
		_ = server.Process.Signal(syscall.SIGKILL)
		<-exited
	}
	client := newClient(nil)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err = client.ListBuckets(context.Background(), nil); err == nil {
			return stop, nil
		}
		select {
		case err := <-exited:
			return nil, fmt.Errorf("%v: %w", server, err)
		default:
			if time.Now().After(deadline) {
				stop()
				return nil, err
			}
		}
	}
}

// A wire is the way to the server, on which a test may do what it likes to a request.
type wire func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error)

func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	send := func() (*http.Response, error) { return transport.RoundTrip(r) }
	if w == nil {
		return send()
	}
	return w(r, send)
}

var transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", socket)
}}

func newClient(w wire) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String("http://s3.test"),
		UsePathStyle: true,
		Region:       "us-east-1",
		HTTPClient:   &http.Client{Transport: w},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "user", SecretAccessKey: "secret"}, nil
		}),
	})
}

var buckets atomic.Int64

// newBucket makes a bucket of the test's own.
func newBucket(t *testing.T) string {
	t.Helper()
	name := fmt.Sprint("bucket", buckets.Add(1))
	_, err := newClient(nil).CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &name})
	noError(t, err)
	return name
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// errCut is what a wire says whose connection is lost.
var errCut = errors.New("the connection is lost")
