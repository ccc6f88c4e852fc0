// Command fencelock runs commands under locks on Redis, and shows who holds which lock.
//
//	fencelock run nightly-report -- ./report.sh
//
// "fencelock help" lists the commands; docs/command.md shows them at work.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strings"

	"github.com/redis/go-redis/v9/logging"
	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/internal/plain"
)

func main() {
	logging.Disable() // of go-redis: what matters is returned as an error
	os.Exit(execute())
}

// execute runs the command line and returns the exit code.
func execute() int {
	root := newRoot()
	cmd, err := root.ExecuteContextC(context.Background())
	if err == nil {
		return 0
	}
	var exit *exitError
	if !errors.As(err, &exit) { // from cobra: an unknown command or flag, a wrong number of arguments
		exit = usage("%w", err)
	}
	if exit.err != nil {
		text := strings.Split(strings.ReplaceAll(exit.err.Error(), "\t", "  "), "\n") // of cobra's suggestions
		for i := range text {
			text[i] = plain.Line(text[i])
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "fencelock: %s\n", strings.Join(text, "\n"))
	}
	if exit.code == exitUsage {
		fmt.Fprintf(cmd.ErrOrStderr(), "%s --help says how to use it\n", cmd.CommandPath())
	}
	return exit.code
}

func newRoot() *cobra.Command {
	at := &connection{}
	root := &cobra.Command{
		Use:   "fencelock",
		Short: "Run commands under locks on Redis, and see who holds which lock",
		Long: `fencelock runs commands under locks on Redis, and shows who holds which lock and who waits.

Redis is found by --url or the variable FENCELOCK_REDIS_URL, and is redis://127.0.0.1:6379 otherwise:
  redis://user@host:6379/0     rediss://host (TLS)     unix:///run/redis.sock
A password is given by the variable FENCELOCK_REDIS_PASSWORD, by --password-file, or in FENCELOCK_REDIS_URL,
and never as an argument, which all users of the machine can see. Further nodes of a cluster, or Sentinels, are
named in the URL: redis://host1:26379?addr=host2:26379&addr=host3:26379
Of a quorum give the URLs of all servers: --url for each, several in FENCELOCK_REDIS_URL, or --urls-file, one a line.
With --sentinel-master these passwords are the master's, but for one before the host in FENCELOCK_REDIS_URL: that is the Sentinels'.
With rediss:// the server's certificate has to be of a CA that the system trusts, or is in --cacert. A server that asks for the client's
certificate gets --cert and --key: fencelock ls --url rediss://host:6379 --cacert ca.crt --cert client.crt --key client.key`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Version:       version(),
		Args:          cobra.NoArgs,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Flags().Bool("version", false, "print the version") // without -v, which run has for itself
	at.addFlags(root.PersistentFlags())
	root.AddCommand(newRun(at), newAcquire(at), newExtend(at), newRelease(at), newList(at), newShow(at), newClients(at), newForceUnlock(at), newQuorum(at), newDoctor(at), newTop(at), newUI(at), newMan())
	return root
}

// version is the module's version that the program was installed as, or (devel) where it was built from a checkout.
func version() string {
	build, ok := debug.ReadBuildInfo()
	if !ok || build.Main.Version == "" {
		return "(devel)"
	}
	return build.Main.Version
}
