package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/internal/plain"
)

func newClients(at *connection) *cobra.Command {
	var out format
	cmd := &cobra.Command{
		Use:   "clients",
		Short: "List the clients that say of themselves that they are there",
		Long: `clients lists the processes whose clients have presence (rlock.WithPresence, and "fencelock run"): what they said last. HEARD is
how long ago that was: a process that lives says it every 10 seconds. HOLDS and WAITS are the locks that it holds and waits for. A process
that is gone is listed until its leases are over, and for half a minute at least.`,
		Example: "  fencelock clients\n  fencelock clients -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.with(func(v *viewer) error {
				clients, err := v.Clients(cmd.Context())
				if err != nil {
					return err
				}
				_ = v.noteServers(cmd) // what clients say of themselves needs no majority
				rows := make([]*clientRow, len(clients))
				lines := [][]string{{"NAME", "HOST", "PID", "PROGRAM", "SINCE", "HEARD", "HOLDS", "WAITS"}}
				if out == "wide" {
					lines[0] = append(lines[0], "ID")
				}
				for i := range clients {
					r := clientOf(&clients[i])
					rows[i] = r
					if out == "name" {
						_ = printName(cmd.OutOrStdout(), r.ID)
					}
					cells := []string{plain.Name(r.Name), plain.Name(r.Host), fmt.Sprint(r.PID), plain.Name(r.Program), r.Since.Format(time.DateTime), span(clients[i].Silent), fmt.Sprint(r.Holds), fmt.Sprint(r.Waits)}
					if out == "wide" {
						cells = append(cells, plain.Name(r.ID))
					}
					lines = append(lines, cells)
				}
				switch out {
				case "json":
					return printJSON(cmd.OutOrStdout(), rows)
				case "name":
					return nil
				}
				return printTable(cmd.OutOrStdout(), lines)
			})
		},
	}
	out.addFlag(cmd)
	return cmd
}
