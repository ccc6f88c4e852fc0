package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/internal/quorums"
)

func newQuorum(at *connection) *cobra.Command {
	var to string
	cmd := &cobra.Command{
		Use:   "quorum",
		Short: "Show the members of a quorum, or replace some of them",
		Long: `quorum shows which servers are a quorum, by the record that its clients keep on each.

With --to it replaces servers, while the locks are in use. NOW, given by --url or --urls-file, has the URLs of the servers that programs have now, and
the file of --to those that they are to have. Give programs the new ones when it is done, one after the other: all go by the members that
the servers name, so that there are no two majorities at any time. Each step that needs it waits until what rests on the members before has run out, which is
the longest lease and a second. Servers that stay or come have to be up; one that leaves may be dead. One that comes has to be empty. A change that was interrupted is run again.

The names of the servers are their host:port here, and /database where that is not 0, and have to be those in the programs. All programs have to be of a version that keeps the record.`,
		Example: `  fencelock quorum --urls-file now.txt
  fencelock quorum --urls-file now.txt --to then.txt --max-lease 30s    # E is replaced by F, or three servers become five`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			longest := time.Duration(cmp.Or(at.maxLease, duration(defaultLease)))
			if longest <= 0 || longest > 24*time.Hour {
				return usage("--max-lease %v: use a day or less, as quorum.WithMaxLease", longest)
			}
			now, err := at.byName(at.addresses)
			if err != nil {
				return err
			}
			defer now.close()
			c := &quorums.Change{Servers: now.clients, Now: now.names, Longest: longest, Tell: func(text string) {
				fmt.Fprintln(cmd.ErrOrStderr(), "fencelock:", plain.Line(text))
			}}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			if to == "" {
				return showMembers(ctx, cmd, c)
			}
			then, err := at.byName(func() ([]string, error) { return readURLs("--to", to) })
			if err != nil {
				return err
			}
			defer then.close()
			c.To = then.names
			for name, rdb := range then.clients {
				if c.Servers[name] == nil {
					c.Servers[name] = rdb
				}
			}
			if err := c.Run(ctx); err != nil {
				return fails("%s", plain.Line(err.Error()))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "changed: give all programs %s, then stop the others\n", strings.Join(c.To, ", "))
			return err
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "file with the URLs of the servers that are to be the quorum, one a line")
	return cmd
}

// named is servers by the names that they have in the record of the members.
type named struct {
	names   []string
	clients map[string]redis.UniversalClient
}

func (n *named) close() {
	for _, rdb := range n.clients {
		_ = rdb.Close()
	}
}

// byName opens a client for each of these URLs.
func (c *connection) byName(urls func() ([]string, error)) (*named, error) {
	all, err := urls()
	if err != nil {
		return nil, err
	}
	n := &named{clients: map[string]redis.UniversalClient{}}
	for i, url := range all {
		rdb, err := c.openOne(url, false)
		if err != nil {
			n.close()
			return nil, usage("server %d of %d: %s", i+1, len(all), reason(err))
		}
		name, err := quorums.Name(rdb)
		if err == nil && n.clients[name] != nil {
			err = fmt.Errorf("%s is given twice", name)
		}
		if err != nil {
			n.close()
			_ = rdb.Close()
			return nil, usage("%s", plain.Line(err.Error()))
		}
		n.names, n.clients[name] = append(n.names, name), rdb
	}
	return n, nil
}

// showMembers prints which servers are the quorum, and what each of those that were given says of itself.
func showMembers(ctx context.Context, cmd *cobra.Command, c *quorums.Change) error {
	newest, away, err := c.Read(ctx)
	if err != nil {
		return fails("%s", plain.Line(err.Error()))
	}
	rows := [][]string{{"SERVER", "MEMBER", "ITS RECORD"}}
	for _, name := range slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(newest.Names), c.Now...)))) {
		member, record := "no", c.Record(name)
		if newest.Has(name) {
			member = "yes"
		}
		switch m, wrong := quorums.ParseMembers(record); {
		case c.Servers[name] == nil:
			record = "not asked: its URL was not given"
		case away[name] != nil:
			record = plain.Silence(away[name])
		case record == "":
			record = "none"
		case wrong != nil:
			record = wrong.Error()
		case m.Compare(newest) == 0:
			record = "the newest"
		}
		rows = append(rows, []string{name, member, record})
	}
	if err := printTable(cmd.OutOrStdout(), rows); err != nil {
		return err
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "\ngeneration %d: %d of %s are a majority\n", newest.Generation, newest.Majority(), strings.Join(newest.Names, ", "))
	return err
}
