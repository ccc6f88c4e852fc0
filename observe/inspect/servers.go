package inspect

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/fencelock/fencelock/internal/plain"
	"github.com/fencelock/fencelock/internal/quorums"
)

// Server is what is known of a server of a quorum, as its clients judge it, as far as an onlooker can. A client knows more: what it has heard from the server
// before, by which it finds out that the server's clock was set.
type Server struct {
	Name     string        // its address
	Counts   bool          // its answers count
	Why      string        // why they do not, in words; of a server that lets this user see no INFO, and is taken to count, that it is so
	CountsIn time.Duration // when they will, of a server that has started lately; otherwise 0
	Err      error         // why it does not answer, or refuses to
	Same     string        // the server before it that is the same one, by its run id; its vote must not count twice
	Run      string        // the run id; "" for one that does not tell it
	Uptime   time.Duration // by its own clock, in seconds
	Member   bool          // it is one of the quorum's, by the newest record of the members that any of these servers has; true where none has any
	Proved   bool          // it has every command on disk before it answers, and has the key fencelock:quorum of a run before: a restart has lost nothing

	record string // of the members
}

// Servers returns the servers of a quorum, in the order of NewQuorum; nil for one Redis. A server that does not answer is no error, unless none does.
// What a server needs for it: INFO, and to prove that a restart lost nothing CONFIG GET and GET fencelock:quorum and
// fencelock:quorum:members.
func (in *Inspector) Servers(ctx context.Context) ([]Server, error) {
	if in.parts == nil {
		return nil, nil
	}
	all, err := within(ctx, in, func() ([]Server, error) {
		answers := each(ctx, in, func(ctx context.Context, one *Inspector) (Server, error) { return one.server(ctx) })
		all := make([]Server, len(answers))
		records := make([]string, len(answers))
		for i, a := range answers {
			records[i] = a.value.record
		}
		members := quorums.Newest(records...)
		for i, a := range answers {
			s := a.value
			s.Name, s.Err = in.parts[i].name, a.err
			if j := slices.IndexFunc(all[:i], func(other Server) bool { return other.Run == s.Run }); j >= 0 && s.Run != "" {
				s.Same = all[j].Name
			}
			s.Member = members.Generation == 0 || members.Has(s.Name) || s.record == members.String()
			s.judge(quorums.Delay(in.longest))
			all[i] = s
		}
		return all, noneOf(in, answers)
	})
	if err != nil {
		return nil, fmt.Errorf("inspect: Servers: %w", err)
	}
	return all, nil
}

// judge says whether the server counts.
func (s *Server) judge(delay time.Duration) {
	switch {
	case s.Err != nil:
		s.Why = "it " + plain.Silence(s.Err)
	case s.Same != "":
		s.Why = "it is the same server as " + s.Same
	case !s.Member:
		s.Why = "it is no member of the quorum (see fencelock quorum)"
	case s.Run == "":
		s.Counts, s.Why = true, "whether it counts cannot be seen: the Redis user needs INFO"
	case s.Proved, s.Uptime >= delay:
		s.Counts = true
	case s.Uptime < 0:
		s.Why = "its clock was set back behind its start"
	default:
		s.CountsIn = delay - s.Uptime
		s.Why = fmt.Sprintf("it has started %v ago and may have forgotten holds; it counts in %v", s.Uptime, s.CountsIn)
	}
}

var (
	runID  = regexp.MustCompile(`run_id:([^\r\n]+)`)
	uptime = regexp.MustCompile(`uptime_in_seconds:(-?\d+)`)
)

// server asks the one server how it is.
func (in *Inspector) server(ctx context.Context) (s Server, err error) {
	var about, persistence, mark, members *redis.StringCmd
	var config *redis.MapStringStringCmd
	cmds, err := in.rdb.Pipelined(ctx, func(pipe redis.Pipeliner) error {
		about, persistence = pipe.Info(ctx, "server"), pipe.Info(ctx, "persistence")
		config, mark = pipe.ConfigGet(ctx, "*appendfsync*"), pipe.Get(ctx, quorums.Marker)
		members = pipe.Get(ctx, quorums.MembersKey)
		return nil
	})
	if err != nil && (unsent(cmds, err) != nil || !isReply(err) && !errors.Is(err, redis.Nil)) {
		return s, err
	}
	if err := about.Err(); err != nil && !redis.HasErrorPrefix(err, "NOPERM") && !redis.HasErrorPrefix(err, "ERR") { // LOADING, NOAUTH and such
		return s, err
	}
	s.record = members.Val()
	run, up := runID.FindStringSubmatch(about.Val()), uptime.FindStringSubmatch(about.Val())
	if run == nil || up == nil {
		return s, nil
	}
	seconds, _ := strconv.Atoi(up[1])
	s.Run, s.Uptime = run[1], time.Duration(seconds)*time.Second
	s.Proved = quorums.Keeps(persistence.Val(), config.Val()) && mark.Val() != "" && mark.Val() != s.Run
	return s, nil
}
