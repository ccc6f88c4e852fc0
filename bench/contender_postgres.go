package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fencelock/fencelock/internal/test/redisserver"
)

// postgres is the server of the contender of this name.
var postgres = ownServer{name: "postgres"}

// postgresConnections is more than the mode with the most holders has; as it comes the server has 100.
const postgresConnections = 200

// postgresProgram finds the server's program: what the variable says, or the last that systems have.
func postgresProgram() (string, error) {
	if path := os.Getenv("POSTGRES_SERVER"); path != "" {
		path, err := exec.LookPath(path)
		if err != nil {
			err = fmt.Errorf("POSTGRES_SERVER is no program: %w", err)
		}
		return path, err
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin/postgres", "/usr/local/bin/postgres", "/usr/bin/postgres"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", errors.New("there is no PostgreSQL: run .ci/databases, or install it, or set POSTGRES_SERVER to the path of its server")
}

// startPostgres starts a server. Beside the addresses and the number of connections, its settings are as they come.
func startPostgres(ctx context.Context, dir string) (served, error) {
	program, err := postgresProgram()
	if err != nil {
		return served{}, err
	}
	owner, err := notRoot(dir)
	if err != nil {
		return served{}, err
	}
	command := func(name string, args ...string) *exec.Cmd {
		c := exec.CommandContext(ctx, filepath.Join(filepath.Dir(program), name), args...)
		c.Dir, c.SysProcAttr, c.WaitDelay = dir, owner, abandon
		return c
	}
	name, err := command("postgres", "--version").Output()
	if err != nil {
		return served{}, err
	}
	versions := map[string]string{"PostgreSQL": strings.TrimPrefix(strings.TrimSpace(string(name)), "postgres (PostgreSQL) ")}
	maps.Copy(versions, versionsOf("pgx/v5"))

	data := filepath.Join(dir, "data")
	if out, err := command("initdb", "-D", data, "-U", "bench", "-A", "trust", "-N", "-E", "UTF8", "--locale=C").CombinedOutput(); err != nil {
		return served{}, fmt.Errorf("initdb: %w: %s", err, out)
	}
	port, err := redisserver.FreePort()
	if err != nil {
		return served{}, err
	}
	addr, output := net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), &tail{limit: 4096}
	server := exec.Command(program, "-D", data, "-k", dir, "-h", "127.0.0.1", "-p", strconv.Itoa(port),
		"-c", fmt.Sprintf("max_connections=%d", postgresConnections))
	server.Dir, server.SysProcAttr, server.Stdout, server.Stderr = dir, owner, output, output
	if err := server.Start(); err != nil {
		return served{}, err
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = server.Wait() }()
	stop := func() {
		_ = server.Process.Signal(syscall.SIGINT) // the one that does not wait for clients
		select {
		case <-ended:
		case <-time.After(patience / 2):
			_ = server.Process.Signal(syscall.SIGQUIT) // the one that waits for nothing, but ends all its processes
			<-ended
		}
	}
	for {
		conn, err := connectPostgres(ctx, addr)
		if err == nil {
			return served{addr: addr, versions: versions, stop: stop}, conn.Close(ctx)
		}
		select {
		case <-ended:
			return served{}, fmt.Errorf("PostgreSQL ended: %w%s", err, output)
		case <-ctx.Done():
			stop()
			return served{}, fmt.Errorf("PostgreSQL is not ready: %w%s", err, output)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// notRoot makes the folder, and processes that are started so, those of a user who is not root: PostgreSQL refuses root.
func notRoot(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return &syscall.SysProcAttr{}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
		if err := errors.Join(uidErr, gidErr); err != nil {
			return nil, err
		}
		attr := &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		return attr, os.Chown(dir, int(uid), int(gid))
	}
	return nil, errors.New("PostgreSQL does not run as root, and there is no user postgres or nobody: run this as another user")
}

func connectPostgres(ctx context.Context, addr string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, "postgres://bench@"+addr+"/postgres?sslmode=disable")
}

func (s *ownServer) dialPostgres(string) (*client, error) {
	return s.dialAdvisory("SELECT pg_advisory_lock($1)", "SELECT pg_advisory_unlock($1)"), nil
}

// errNotHeld is what PostgreSQL says with false, and a warning.
var errNotHeld = errors.New("pg_advisory_unlock: the connection does not hold the lock")

// dialAdvisory opens a connection for each lock, because whoever waits or holds needs one for himself.
func (s *ownServer) dialAdvisory(lock, unlock string) *client {
	var conns []*pgx.Conn
	return &client{
		close: func() {
			for _, conn := range conns {
				_ = conn.Close(context.Background())
			}
		},
		lock: func(key string) lockFunc {
			hash := fnv.New64a()
			_, _ = hash.Write([]byte(key))
			number := int64(hash.Sum64())
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			conn, failed := connectPostgres(ctx, s.addr)
			if failed == nil {
				conns = append(conns, conn)
			}
			return func(ctx context.Context) (int64, func() error, error) {
				if failed != nil {
					return 0, nil, failed
				}
				_, err := conn.Exec(ctx, lock, number)
				return 0, func() error {
					var held bool
					err := conn.QueryRow(ctx, unlock, number).Scan(&held)
					if err == nil && !held {
						err = errNotHeld
					}
					return err
				}, err
			}
		},
	}
}
