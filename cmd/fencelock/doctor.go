package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/pubsub"
	"github.com/fencelock/fencelock/scripts"
)

// A finding is the result of one check.
type finding struct {
	Server string `json:"server,omitempty"` // of a quorum's servers; "" for what is about all of them
	Check  string `json:"check"`
	Result string `json:"result"` // ok, warning or wrong
	Text   string `json:"text"`
}

// doctor collects findings on a server, or on each master of a cluster.
type doctor struct {
	*viewer
	server   redis.UniversalClient
	info     map[string]string
	findings []finding
}

func (d *doctor) note(result, check, format string, args ...any) {
	for i, arg := range args {
		if err, is := arg.(error); is {
			args[i] = plain.Reason(err)
		}
	}
	d.findings = append(d.findings, finding{"", check, result, fmt.Sprintf(format, args...)})
}

func newDoctor(at *connection) *cobra.Command {
	var out format
	var what []string
	cmd := &cobra.Command{
		Use:   "doctor [NAME...]",
		Short: "Check whether this Redis, and this user's rights, will do for locks",
		Long: `doctor looks at the server's version, role, persistence, memory policy and clock, tries the commands, keys and channels that locks need,
takes and releases a lock, and has a second client wait for it. For that it uses a name of its own, and deletes what it has written; with a NAME, that name with an ending
of its own, for a user whose rights go by the names of keys. What is missing it names as ACL SETUSER does. NAMEs are also checked for what a
cluster asks of them.

With --for it asks for the rights that what is named needs: lock, rw (read-write locks), semaphore (NAME is the semaphore's), quorum,
guard, presence, inspect (ls, show, top and the page) and force-unlock. Without, for lock, presence and inspect.

With several URLs they are the servers of a quorum: doctor says which of them count for a majority, and why others do not, what a restart of
each would lose, and which are one server, away, far, or of another version. --max-lease is that of the clients.

The exit code is 1 if something is wrong: locks do not work here, or not safely.`,
		Example: "  fencelock doctor\n  fencelock doctor --cluster account:42\n  fencelock doctor --for semaphore,force-unlock jobs\n  fencelock doctor --urls-file quorum.txt --max-lease 1m",
		RunE: func(cmd *cobra.Command, args []string) error {
			kinds, err := kindsOf(what)
			if err != nil {
				return err
			}
			if at.several() {
				found, err := examineQuorum(cmd.Context(), at, what, args, time.Duration(cmp.Or(at.maxLease, duration(defaultLease))))
				if err != nil {
					return err
				}
				return said(cmd, out, found)
			}
			return at.with(func(v *viewer) error {
				d := &doctor{viewer: v}
				d.examine(cmd.Context(), at, kinds, args)
				return said(cmd, out, d.findings)
			})
		},
	}
	out.addFlag(cmd)
	cmd.Flags().StringSliceVar(&what, "for", nil, "what is to work here: "+strings.Join(kindNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions(kindNames(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

const (
	fine    = "ok"
	warning = "warning"
	wrong   = "wrong"
)

// said prints what was found, and returns the error for something wrong.
func said(cmd *cobra.Command, out format, found []finding) error {
	if err := printFindings(cmd, out, found); err != nil {
		return err
	}
	if slices.ContainsFunc(found, func(f finding) bool { return f.Result == wrong }) {
		return &exitError{code: exitFailed}
	}
	return nil
}

func printFindings(cmd *cobra.Command, out format, found []finding) error {
	if out == "json" {
		return printJSON(cmd.OutOrStdout(), found)
	}
	rows := [][]string{}
	for _, f := range found {
		row := []string{f.Result, f.Check, f.Text}
		if f.Server != "" {
			row[1] = f.Server + " " + f.Check
		}
		rows = append(rows, row)
	}
	return printTable(cmd.OutOrStdout(), rows)
}

func (d *doctor) examine(ctx context.Context, at *connection, kinds []kind, names []string) {
	addresses, err := at.addresses()
	if err != nil {
		d.note(wrong, "connection", "%v", err)
		return
	}
	if hint, err := d.ping(ctx, addresses[0]); hint != "" {
		d.note(wrong, "connection", "%s%s", cmp.Or(at.away(err), plain.Reason(err)), hint)
		return
	} else if err != nil {
		d.note(wrong, "connection", "%s", at.said(err).Error())
		return
	}
	began := time.Now() // on a connection that is there
	_ = d.rdb.Ping(ctx)
	d.note(fine, "connection", "%s answers in %v", at.shown(), time.Since(began).Round(10*time.Microsecond))
	keepsLocks := d.examineSlots(ctx)
	err = onEach(ctx, d.rdb, func(server redis.UniversalClient) {
		d.server = server
		keepsLocks = d.examineServer(ctx, at) && keepsLocks
	})
	if err != nil {
		d.note(wrong, "cluster", "%v", err)
	}
	for _, name := range names {
		if err := scripts.KeysOf(name).CheckCluster(); err != nil {
			result := warning
			if at.cluster {
				result = wrong
			}
			d.note(result, "name in a cluster", "%v", err)
		}
	}
	base := "fencelock_doctor"
	if len(names) > 0 {
		base = names[0]
	}
	if keepsLocks {
		d.examineRights(ctx, at, kinds, base)
	}
}

// onEach calls do for the server, or for each master of a cluster.
func onEach(ctx context.Context, rdb redis.UniversalClient, do func(server redis.UniversalClient)) error {
	cluster, is := rdb.(*redis.ClusterClient)
	if !is {
		do(rdb)
		return nil
	}
	masters := make(chan *redis.Client, 1000)
	err := cluster.ForEachMaster(ctx, func(_ context.Context, server *redis.Client) error {
		masters <- server
		return nil
	})
	close(masters)
	for server := range masters {
		do(server)
	}
	return err
}

// readInfo asks what the server says of itself, and tells whether it says something.
func (d *doctor) readInfo(ctx context.Context) bool {
	d.info = map[string]string{}
	text, err := d.server.Info(ctx).Result()
	if err != nil {
		why, remedy := "no answer", "try again"
		if redis.HasErrorPrefix(err, "NOPERM") {
			why, remedy = "the user may not ask for it", "give the user +info"
		} else if pubsub.Lacks(err) {
			why, remedy = "the server does not know the command", "take away its rename-command, or the proxy that refuses INFO; in a quorum the server counts only with INFO"
		}
		d.note(warning, "INFO", "%s, so that version, persistence and memory are not checked: %s (%v)", why, remedy, err)
		return false
	}
	for line := range strings.Lines(text) {
		if name, value, found := strings.Cut(strings.TrimSpace(line), ":"); found {
			d.info[name] = value
		}
	}
	return true
}

// examineServer looks at what the server says of itself, and tells whether the server may keep locks.
func (d *doctor) examineServer(ctx context.Context, at *connection) bool {
	if !d.readInfo(ctx) {
		if role, err := d.server.Do(ctx, "ROLE").Slice(); err == nil && len(role) > 0 && role[0] != "master" {
			d.info["role"] = fmt.Sprint(role[0])
			return d.examineRole(at)
		}
		d.examineClock(ctx)
		return true
	}
	d.examineVersion()
	if !d.examineRole(at) {
		return false
	}
	d.examinePersistence(ctx)
	d.examineMemory()
	d.examineClock(ctx)
	return true
}

func (d *doctor) examineVersion() {
	name, version, tried := engineOf(d.info)
	if !tried {
		d.note(warning, "version", "%s %s: the tests of the locks do not run on it%s", name, version, seeRow(name))
		return
	}
	parts := strings.Split(version+".0.0", ".")
	major, _ := strconv.Atoi(parts[0])
	minor, _ := strconv.Atoi(parts[1])
	if major < 6 || major == 6 && minor < 2 {
		d.note(wrong, "version", "%s %s: locks need Redis 6.2 or newer, or Valkey", name, version)
		return
	}
	d.note(fine, "version", "%s %s%s", name, version, seeRow(name))
}

func (d *doctor) examineRole(at *connection) (keepsLocks bool) {
	switch {
	case slices.Contains([]string{d.info["redis_mode"], d.info["server_mode"], d.info["role"]}, "sentinel"): // server_mode is Valkey's
		d.note(wrong, "role", "this is a Sentinel, which keeps no locks: with --sentinel-master NAME the URL may be that of a Sentinel")
		return false
	case d.info["role"] == "":
		d.note(warning, "role", "the server does not tell whether it is a master: it must be one")
	case d.info["role"] != "master" && d.info["slave_read_only"] == "0":
		d.note(wrong, "role", "this server is a replica that takes writes (replica-read-only no): it gives out locks that its master knows nothing of. Set replica-read-only yes, and name the master, or use --sentinel-master")
		return false
	case d.info["role"] != "master":
		d.note(wrong, "role", "this server is a replica, which cannot keep locks: name the master, or use --sentinel-master")
		return false
	case d.info["cluster_enabled"] == "1" && !at.cluster:
		d.note(wrong, "role", "this server is a node of a cluster: use --cluster")
		return false
	case d.info["cluster_enabled"] == "1":
		d.note(fine, "role", "a master of a cluster, port %s, %s", d.info["tcp_port"], count(d.info["connected_slaves"], "replica"))
	case d.info["connected_slaves"] != "0":
		d.note(fine, "role", "master, %s. One that is promoted may not know of the last locks and tokens: see rlock.WithReplicas and fenced.WithClockFloor", count(d.info["connected_slaves"], "replica"))
	default:
		d.note(fine, "role", "master, without replicas")
	}
	return true
}

// count is a number of things.
func count(n, thing string) string {
	if n != "1" {
		thing += "s"
	}
	return n + " " + thing
}

func (d *doctor) examinePersistence(ctx context.Context) {
	if d.info["aof_enabled"] == "" {
		d.note(warning, "persistence", "the server does not tell what it keeps over a restart: what it loses of locks and tokens, it gives again")
		return
	}
	if d.info["aof_enabled"] == "1" {
		result, text := fsync(d.server.ConfigGet(ctx, "*appendfsync*").Result())
		d.note(result, "persistence", "%s", text)
		return
	}
	const after = "after a restart locks are free and tokens begin again, and guards refuse writes until they have caught up: set appendonly yes, or use fenced.WithClockFloor"
	if set, err := d.server.ConfigGet(ctx, "save").Result(); err == nil && set["save"] == "" {
		d.note(warning, "persistence", "none: %s", after)
		return
	}
	d.note(warning, "persistence", "snapshots at most, without appendonly: what is newer than the last one is gone, and %s", after)
}

func (d *doctor) examineMemory() {
	policy, bound := d.info["maxmemory_policy"], d.info["maxmemory"]
	switch {
	case policy == "":
		d.note(warning, "memory", "the server does not tell its maxmemory-policy: it must evict no keys")
	case policy == "noeviction":
		d.examineRoom()
	case bound == "0":
		d.note(warning, "memory", "maxmemory-policy %s, which does nothing while maxmemory is 0: set noeviction before you set maxmemory, else held locks can be evicted", policy)
	default:
		d.note(wrong, "memory", "maxmemory-policy %s: held locks and their tokens can be evicted: set noeviction", policy)
	}
}

// maxClockDifference is what people notice in times that are shown. Locks do not compare the two clocks.
const maxClockDifference = time.Second

func (d *doctor) examineClock(ctx context.Context) {
	before := time.Now()
	theirs, err := d.server.Time(ctx).Result()
	took := time.Since(before)
	if err != nil {
		result := wrong
		if redis.HasErrorPrefix(err, "NOPERM") {
			result = warning
		}
		d.note(result, "clock", "%v", err)
		return
	}
	difference := theirs.Sub(before.Add(took / 2))
	ahead := "ahead of"
	if difference < 0 {
		difference, ahead = -difference, "behind"
	}
	text := fmt.Sprintf("the server's is %v %s ours, as exact as %v", difference.Round(time.Millisecond), ahead, (took / 2).Round(time.Microsecond))
	if difference > maxClockDifference+took {
		d.note(warning, "clock", "%s: leases go by the server's clock alone, but a clock that is wrong may be set, and then leases end early: use NTP on both", text)
		return
	}
	d.note(fine, "clock", "%s", text)
}
