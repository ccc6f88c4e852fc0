package sqltest

import (
	"bytes"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// server is a database server of these tests' own, which listens on a socket in its folder and nowhere else.
type server struct {
	dir    string
	cmd    *exec.Cmd
	exited chan struct{}
	stop   syscall.Signal
}

var servers struct {
	postgres, mariadb       *server
	postgresErr, mariadbErr error
}

// TestMain starts the servers, once for all tests. A server that cannot start fails the tests that want it.
func TestMain(m *testing.M) {
	runtime.LockOSThread() // for as long as the servers run: see childAttr
	servers.postgres, servers.postgresErr = startPostgres()
	servers.mariadb, servers.mariadbErr = startMariaDB()
	code := m.Run()
	servers.postgres.close()
	servers.mariadb.close()
	os.Exit(code)
}

// program finds a server's program: what the variable says, or the last of those that match.
func program(variable, pkg string, patterns ...string) (string, error) {
	if path := os.Getenv(variable); path != "" {
		path, err := exec.LookPath(path)
		if err != nil {
			err = fmt.Errorf("%s is no program: %w", variable, err)
		}
		return path, err
	}
	for _, pattern := range patterns {
		found, _ := filepath.Glob(pattern)
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	return "", fmt.Errorf("there is no %s: run .ci/databases, or install it, or set %s to the path of its server", pkg, variable)
}

func startPostgres() (*server, error) {
	postgres, err := program("POSTGRES_SERVER", "postgresql", "/usr/lib/postgresql/*/bin/postgres", "/usr/local/bin/postgres", "/usr/bin/postgres")
	if err != nil {
		return nil, err
	}
	s, err := newServer(syscall.SIGQUIT)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.dir, "data")
	// Without fsync: nothing here outlives its server, and the cost of a guard is not hidden behind a disk.
	return s, s.run(exec.Command(filepath.Join(filepath.Dir(postgres), "initdb"), "-D", data, "-U", "fencelock", "-A", "trust", "-N", "-E", "UTF8", "--locale=C"),
		exec.Command(postgres, "-D", data, "-k", s.dir, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "max_connections=60"),
		"pgx", postgresDSN(s, ""))
}

func startMariaDB() (*server, error) {
	mariadbd, err := program("MARIADB_SERVER", "mariadb-server", "/usr/sbin/mariadbd", "/usr/local/sbin/mariadbd", "/usr/bin/mariadbd", "/usr/local/bin/mariadbd")
	if err != nil {
		return nil, err
	}
	install, err := exec.LookPath("mariadb-install-db")
	if err != nil {
		return nil, fmt.Errorf("there is a mariadbd, but no mariadb-install-db on the PATH: %w", err)
	}
	s, err := newServer(syscall.SIGKILL)
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.dir, "data")
	return s, s.run(exec.Command(install, "--no-defaults", "--datadir="+data, "--auth-root-authentication-method=normal", "--skip-test-db"),
		exec.Command(mariadbd, "--no-defaults", "--datadir="+data, "--socket="+filepath.Join(s.dir, "sock"), "--skip-networking",
			"--pid-file="+filepath.Join(s.dir, "pid"), "--innodb-flush-log-at-trx-commit=0", "--innodb-lock-wait-timeout=20", "--max-connections=200"),
		"mysql", mariadbDSN(s, "", ""))
}

func postgresDSN(s *server, schema string) string {
	return fmt.Sprintf("host=%s user=fencelock dbname=postgres sslmode=disable search_path='%s'", s.dir, schema)
}

func mariadbDSN(s *server, schema, params string) string {
	return fmt.Sprintf("root@unix(%s)/%s?%s", filepath.Join(s.dir, "sock"), schema, params)
}

func newServer(stop syscall.Signal) (*server, error) {
	dir, err := os.MkdirTemp("", "sqltest") // short: a socket's path has 107 bytes at most
	if err != nil {
		return nil, err
	}
	return &server{dir: dir, exited: make(chan struct{}), stop: stop}, nil
}

// run prepares the folder, starts the server, and waits until it answers.
func (s *server) run(prepare, serve *exec.Cmd, driver, dsn string) error {
	attr, err := childAttr(s.dir)
	if err != nil {
		return err
	}
	var output bytes.Buffer
	prepare.Dir, prepare.SysProcAttr, prepare.Stdout, prepare.Stderr = s.dir, attr, &output, &output
	if err := prepare.Run(); err != nil {
		return fmt.Errorf("%v: %w\n%s", prepare, err, &output)
	}
	log, err := os.Create(filepath.Join(s.dir, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	serve.Dir, serve.SysProcAttr, serve.Stdout, serve.Stderr = s.dir, attr, log, log
	if err := serve.Start(); err != nil {
		return err
	}
	s.cmd = serve
	go func() {
		_ = serve.Wait()
		close(s.exited)
	}()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if err = db.Ping(); err == nil {
			return nil
		}
		select {
		case <-s.exited:
		default:
			if time.Now().Before(deadline) {
				continue
			}
		}
		text, _ := os.ReadFile(log.Name())
		return fmt.Errorf("%v: %w\n%s", serve, err, text)
	}
}

// close ends the server's process, by its id, and removes its folder.
func (s *server) close() {
	if s == nil {
		return
	}
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(s.stop)
		select {
		case <-s.exited:
		case <-time.After(time.Minute):
			_ = s.cmd.Process.Kill()
			<-s.exited
		}
	}
	_ = os.RemoveAll(s.dir)
}

// childAttr makes the folder, and the processes in it, those of a user who is not root: PostgreSQL refuses root.
func childAttr(dir string) (*syscall.SysProcAttr, error) {
	attr := endWithParent()
	if os.Getuid() != 0 {
		return attr, nil
	}
	for _, name := range []string{"postgres", "mysql", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(u.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return attr, os.Chown(dir, int(uid), int(gid))
	}
	return nil, fmt.Errorf("the servers must not run as root, and there is no user postgres, mysql or nobody: run the tests as another user")
}

// TestServersAreTheirOwn fails where a server could not be started, and says what to do.
func TestServersAreTheirOwn(t *testing.T) {
	for _, err := range []error{servers.postgresErr, servers.mariadbErr} {
		if err != nil {
			t.Error(err)
		}
	}
	// What is missing is an error that says so.
	_, err := program("SQLTEST_NO_SUCH_SERVER", "nosuchdb", "/nonexistent/*")
	if err == nil || err.Error() != "there is no nosuchdb: run .ci/databases, or install it, or set SQLTEST_NO_SUCH_SERVER to the path of its server" {
		t.Errorf("error %v", err)
	}
}
