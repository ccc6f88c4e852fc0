package main

import (
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// A pipe is a listener with one connection.
type pipe struct {
	net.Listener
	conn chan net.Conn
}

func (p pipe) Accept() (net.Conn, error) {
	if c, open := <-p.conn; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipe) Close() error   { return nil }
func (p pipe) Addr() net.Addr { return &net.TCPAddr{} }

// A request is answered also where Redis does not answer for so long as the page waits for it. Who begins a request and does not go on, or does not read the answer, keeps no connection of the page.
func TestUISlowClient(t *testing.T) {
	for name, request := range map[string]string{
		"nothing":            "",
		"half a header":      "GET / HTTP/1.1\r\nHost: ",
		"half a form":        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nty",
		"no further request": "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
		"does not read":      "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				closed := make(chan time.Time, 1)
				server := newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					time.Sleep(20 * time.Second) // Redis does not answer
					if name == "no further request" && r.Context().Err() != nil {
						t.Errorf("the request's context: %v", r.Context().Err())
					}
					_, _ = w.Write(make([]byte, 1<<16))
				}))
				server.ConnState = func(_ net.Conn, s http.ConnState) {
					if s == http.StateClosed {
						closed <- time.Now()
					}
				}
				listener := pipe{conn: make(chan net.Conn, 1)}
				listener.conn <- theirs
				ended := make(chan struct{})
				go func() { _ = server.Serve(listener); close(ended) }()
				began := time.Now()
				if request != "" {
					if _, err := io.WriteString(ours, request); err != nil {
						t.Fatal(err)
					}
				}
				if name != "does not read" {
					go func() { _, _ = io.Copy(io.Discard, ours) }()
				}
				select {
				case at := <-closed:
					if took := at.Sub(began); took > time.Minute {
						t.Errorf("closed after %v", took)
					}
				case <-time.After(time.Hour):
					t.Error("open after an hour")
				}
				_ = ours.Close()
				close(listener.conn)
				<-ended
			})
		})
	}
}
