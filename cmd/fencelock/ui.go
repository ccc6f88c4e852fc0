package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/observe/lockui"
)

func newUI(at *connection) *cobra.Command {
	var listen string
	var allow, public bool
	var longHold, lease duration
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show the locks on a page for a browser",
		Long: `ui serves a page of the locks until it is interrupted: what is stuck first, who holds it, and who waits. It prints where the page is.

The page asks nobody who they are. So it is served to this machine alone, unless --public says that others may read it, too; a service
of yours can mount the same page behind its login (package observe/lockui).`,
		Example: "  fencelock ui\n  fencelock ui --listen 127.0.0.1:8080 --allow-force-unlock",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(func(v *viewer) error {
				opts := []lockui.Option{
					lockui.WithLongHold(time.Duration(longHold)), lockui.WithLease(time.Duration(lease)),
					lockui.WithLogger(slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))),
				}
				if allow {
					if public {
						fmt.Fprintln(cmd.ErrOrStderr(), "fencelock: whoever reaches this page may free any lock: put a login before it, or leave out --allow-force-unlock")
					}
					opts = append(opts, lockui.WithForceUnlock(func(*http.Request) bool { return true }))
				}
				ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
				defer stop()
				return serve(ctx, cmd, listen, public, lockui.New(v.Inspector, opts...))
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&listen, "listen", "127.0.0.1:0", "address and port of the page; port 0 is a free one")
	f.BoolVar(&allow, "allow-force-unlock", false, "let whoever sees the page force a lock open")
	f.BoolVar(&public, "public", false, "serve the page to other machines, too, if --listen says so")
	f.Var(&longHold, "long-hold", "a hold that others wait for is stuck when it is so old (default 1m)")
	f.Var(&lease, "lease", "a whole lease, as the services have it (default 30s)")
	return cmd
}

// serve serves the page until ctx ends.
func serve(ctx context.Context, cmd *cobra.Command, address string, public bool, page http.Handler) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return &exitError{exitFailed, fmt.Errorf("--listen %s: the port is in use: take another one", address)}
	}
	if err != nil {
		return usage("--listen %s: %w", address, err)
	}
	if !listener.Addr().(*net.TCPAddr).IP.IsLoopback() {
		if !public {
			_ = listener.Close()
			return usage("--listen %s: others than this machine reach that address, and the page asks nobody who they are: add --public if they may read it", address)
		}
	} else {
		page = toThisMachine(page)
	}
	server := newServer(page)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	fmt.Fprintf(cmd.OutOrStdout(), "http://%s/\n", listener.Addr())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// newServer returns the server of the page. Where Redis does not answer a request is answered after 20 s.
func newServer(page http.Handler) *http.Server {
	return &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 30 * time.Second}
}

// toThisMachine refuses requests for another host's name: a page from elsewhere whose name has been made to lead to this machine would
// read this one, and use its buttons.
func toThisMachine(page http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if ip, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !ip.IsLoopback()) {
			http.Error(w, "This page is served under this machine's loopback address alone.", http.StatusMisdirectedRequest)
			return
		}
		page.ServeHTTP(w, r)
	})
}
