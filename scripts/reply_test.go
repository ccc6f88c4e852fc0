package scripts

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// fuzzed makes a reply of Redis out of bytes: any nesting of what go-redis gives for a reply, and of what it doesn't.
type fuzzed struct{ data []byte }

func (z *fuzzed) next() byte {
	if len(z.data) == 0 {
		return 0
	}
	b := z.data[0]
	z.data = z.data[1:]
	return b
}

func (z *fuzzed) take(n int) []byte {
	n = min(n, len(z.data))
	b := z.data[:n]
	z.data = z.data[n:]
	return b
}

func (z *fuzzed) value(depth int) any {
	switch b := z.next(); b % 10 {
	case 0, 1:
		return int64(int8(z.next()))
	case 2:
		var wide [8]byte
		copy(wide[:], z.take(8))
		return int64(binary.BigEndian.Uint64(wide[:]))
	case 3:
		return string(z.take(int(z.next() % 24)))
	case 4:
		return strconv.Itoa(int(int8(z.next())))
	case 5:
		return nil
	case 6:
		return float64(z.next()) / 4
	case 7:
		return b >= 128
	case 8:
		return redis.Nil
	}
	list := []any{}
	if depth < 3 {
		for range z.next() % 6 {
			list = append(list, z.value(depth+1))
		}
	}
	return list
}

var replySeeds = [][]byte{
	{},
	{9, 2, 0, 1, 0, 7},                  // {1, 7}
	{9, 2, 0, 0, 0, 255},                // {0, -1}
	{9, 2, 0, 254, 0, 0},                // {-2, 0}
	{9, 2, 0, 2, 0, 3},                  // {2, 3}
	{9, 2, 0, 1, 0, 255},                // {1, -1}
	{9, 2, 0, 2, 0, 255},                // {2, -1}
	{9, 2, 0, 1, 4, 7},                  // {1, '7'}
	{9, 2, 0, 255, 0, 255},              // Redisson's {-1, -1}
	{9, 4, 0, 1, 0, 1, 0, 9, 3, 1, 'x'}, // {1, 1, 9, 'x'}
	{9, 1, 9, 2, 0, 1, 3, 0},            // {{1, ''}}
	{9, 1, 9, 2, 0, 1, 3, 9, 'W', 'R', 'O', 'N'}, // {{1, 'WRON'}}
	{9, 1, 9, 2, 2, 127, 255, 255, 255, 255, 255, 255, 255, 3, 0},
	{9, 1, 9, 2, 0, 0, 3, 0},                             // no lock has number 0
	{9, 4, 0, 1, 0, 7, 0, 0, 0, 9},                       // of a batch of two: {1, 7, 0, 9}
	{9, 4, 0, 255, 3, 4, 'W', 'R', 'O', 'N', 0, 1, 0, 2}, // {-1, 'WRON', 1, 2}
	{9, 2, 0, 255, 3, 4, 'W', 'R', 'O', 'N'},             // {-1, 'WRON'}
	{9, 2, 0, 0, 3, 1, 'x'},                              // of an Unlock: {0, 'x'}
	{9, 2, 0, 0, 9, 2, 0, 9, 3, 1, 'x'},                  // of an Acquire: {0, {9, 'x'}}
	{0, 1}, {0, 0}, {0, 2}, {4, 1}, {5}, {8},
}

// aParser is an op whose reply is read.
func aParser(kind *kind) *Op { return &Op{kind: kind, keys: KeysOf("a")} }

// refused tells that err is one of Redis's, inside a reply that says so.
func refused(pair []any, err error) bool {
	var said replyError
	return errors.As(err, &said) && number(pair[0]) == -1 && string(said) == pair[1] && !Unanswered(err)
}

// strange fails the test unless err is what a parser says of a reply that no script gives.
func strange(t *testing.T, reply any, err error) {
	t.Helper()
	if !errors.Is(err, errReply) || Unanswered(err) || Passing(err) {
		t.Errorf("%v: the error is %v", reply, err)
	}
}

func FuzzParseAnswer(f *testing.F) {
	for _, s := range replySeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		reply := (&fuzzed{data}).value(0)
		a, err := aParser(&acquires).parse(reply, nil)
		pair, ok := reply.([]any)
		if err != nil {
			if !ok || len(pair) != 2 || !refused(pair, err) {
				strange(t, reply, err)
			}
			if a != (Answer{}) {
				t.Errorf("%v: an error, and %+v", reply, a)
			}
			return
		}
		if !ok || len(pair) != 2 {
			t.Fatalf("%v is taken for an answer", reply)
		}
		want := ""
		switch verdict := number(pair[0]); {
		case a.Held:
			want = fmt.Sprint(1, a.Token, a.TTL)
			if verdict != 1 {
				t.Errorf("%v is taken for held", reply)
			}
		default:
			want = fmt.Sprint(verdict, a.Token, a.TTL)
		}
		if list, own := pair[1].([]any); own {
			pair = []any{pair[0], list[0]}
			if number(pair[0]) != 0 || len(list) != 2 || a.Own != list[1] {
				t.Errorf("%v is read as %+v", reply, a)
			}
		} else if a.Own != "" {
			t.Errorf("%v is read as %+v", reply, a)
		}
		if got := wire(pair); got != want {
			t.Errorf("%v is read as %s", reply, want)
		}
	})
}

// wire is what an answer says, by a second reading.
func wire(pair []any) string {
	verdict, value := number(pair[0]), number(pair[1])
	switch verdict {
	case 1:
		return fmt.Sprint(1, value, time.Duration(0))
	case 0:
		return fmt.Sprint(0, 0, duration(value))
	case -2:
		return fmt.Sprint(-2, 0, time.Duration(0))
	}
	return "an error"
}

func number(v any) int64 {
	if s, ok := v.(string); ok {
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}
	n, _ := v.(int64)
	return n
}

// duration is a PTTL, as time; what is more than 100 years is 100 years.
func duration(ms int64) time.Duration {
	switch {
	case ms < 0:
		return time.Duration(ms)
	case ms > 100*365*24*3600*1000:
		return 100 * 365 * 24 * time.Hour
	}
	return time.Duration(ms) * time.Millisecond
}

func FuzzParseReleased(f *testing.F) {
	for _, s := range replySeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		reply := (&fuzzed{data}).value(0)
		a, err := aParser(&unlocks).parse(reply, nil)
		pair, ok := reply.([]any)
		ok = ok && len(pair) == 2
		own := ""
		if ok && number(pair[0]) == 0 {
			own, _ = pair[1].(string)
		}
		switch {
		case err != nil:
			if !ok || !refused(pair, err) {
				strange(t, reply, err)
			}
			if a != (Answer{}) {
				t.Errorf("%v: an error, and %+v", reply, a)
			}
		case !ok, a != (Answer{Held: number(pair[0]) == 1, Receivers: a.Receivers, Untold: a.Untold, Own: own}), number(pair[0]) != 0 && number(pair[0]) != 1,
			a.Held && (int64(a.Receivers) != max(number(pair[1]), 0) || a.Untold != (number(pair[1]) < 0)), !a.Held && (a.Receivers != 0 || a.Untold):
			t.Errorf("%v is read as %+v", reply, a)
		}
	})
}

// An answer about a line has all its parts, or is none.
func FuzzParseLine(f *testing.F) {
	for _, s := range replySeeds {
		f.Add(s)
	}
	f.Add([]byte{9, 2, 0, 0, 9, 4, 0, 254, 0, 2, 4, 9, 3, 3, 'a', ':', '1'})            // {0, {-2, 2, '9', 'a:1'}}
	f.Add([]byte{9, 2, 0, 0, 9, 5, 0, 254, 0, 2, 4, 9, 3, 3, 'a', ':', '1', 3, 1, 'x'}) // {0, {-2, 2, '9', 'a:1', 'x'}}
	f.Add([]byte{9, 2, 0, 0, 9, 5, 0, 254, 0, 2, 4, 9, 3, 3, 'a', ':', '1', 0, 1})      // {0, {-2, 2, '9', 'a:1', 1}}
	f.Add([]byte{9, 2, 0, 10, 9, 4, 0, 254, 0, 2, 4, 9, 3, 3, 'a', ':', '1'})           // {10, {-2, 2, '9', 'a:1'}}
	f.Add([]byte{9, 2, 0, 48, 0, 0})                                                    // {48, 0}
	f.Add([]byte{9, 2, 0, 18, 0, 0})                                                    // {18, 0}
	f.Add([]byte{9, 2, 0, 28, 0, 0})                                                    // {28, 0}
	f.Add([]byte{9, 2, 0, 38, 0, 0})                                                    // {38, 0}
	f.Add([]byte{9, 2, 0, 1, 9, 3, 0, 255, 0, 2, 4, 9})                                 // {1, {-1, 2, '9'}}
	f.Fuzz(func(t *testing.T, data []byte) {
		reply := (&fuzzed{data}).value(0)
		for _, kind := range []*kind{&acquiresInTurn, &releases, &leaves} {
			a, err := aParser(kind).parse(reply, nil)
			pair, ok := reply.([]any)
			ok = ok && len(pair) == 2
			var outside Refusal
			for why := Forbidden; ok && why <= Uncounted && number(pair[0]) >= 8; why++ { // 10 more than a verdict of -2 or more, 20, or 30
				outside, pair = why, []any{number(pair[0]) - 10, pair[1]}
			}
			if err != nil {
				if !ok || !refused(pair, err) {
					strange(t, reply, err)
				}
				if a != (Answer{}) {
					t.Errorf("%v: an error, and %+v", reply, a)
				}
				continue
			}
			if !ok {
				t.Fatalf("%v is taken for an answer", reply)
			}
			list, lined := pair[1].([]any)
			want, verdict := Answer{}, number(pair[0])
			switch {
			case kind == &acquiresInTurn && lined && verdict == 0 && (len(list) == 4 || len(list) == 5):
				want = Answer{TTL: duration(number(list[0])), Before: int(number(list[1])), Score: number(list[2]), Head: list[3].(string)}
				if len(list) == 5 {
					want.Own = list[4].(string)
				}
			case kind == &releases && lined && verdict == 1 && len(list) == 3:
				told := number(list[0])
				want = Answer{Held: true, Receivers: int(max(told, 0)), Untold: told < 0, More: number(list[1]) == 2, Score: number(list[2])}
			case lined:
				t.Errorf("%v is read as %+v", reply, a)
			case kind == &leaves:
				want = Answer{More: verdict != -2 && number(pair[1]) == 2, Stays: verdict == -2}
			default:
				like := map[any]*Op{&acquiresInTurn: aParser(&acquires), &releases: aParser(&unlocks)}[kind]
				want, _ = like.parse(pair, nil)
			}
			want.Outside = outside
			if a != want {
				t.Errorf("%v is read as %+v, want %+v", reply, a, want)
			}
		}
	})
}

// Whatever the reply to a batch, each op hears once, and what it would hear alone.
func FuzzParseBatch(f *testing.F) {
	for _, s := range replySeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		reply := (&fuzzed{data}).value(0)
		for n := range 5 {
			var ops []*Op
			for i := range n {
				ops = append(ops, aParser([]*kind{&acquires, &unlocks, &levels, &transfers}[i]))
			}
			list, ok := reply.([]any)
			i := 0
			parseBatch(ops, reply, nil, func(op *Op, a Answer, err error) {
				if i == n || op != ops[i] {
					t.Fatalf("%v: op %d of %d hears out of its turn", reply, i, n)
				}
				if !ok || len(list) != 2*n {
					strange(t, reply, err)
				} else if alone, said := op.parse([]any{list[2*i], list[2*i+1]}, nil); a != alone || fmt.Sprint(err) != fmt.Sprint(said) {
					t.Errorf("%v: op %d hears %+v, %v, and alone %+v, %v", reply, i, a, err, alone, said)
				}
				i++
			})
			if i != n {
				t.Errorf("%v: %d of %d ops hear of it", reply, i, n)
			}
		}
	})
}

func FuzzParseState(f *testing.F) {
	for _, s := range replySeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		reply := (&fuzzed{data}).value(0)
		st, err := parseState(reply)
		if err != nil {
			strange(t, reply, err)
			if st != (State{}) {
				t.Errorf("%v: an error, and %+v", reply, st)
			}
			return
		}
		list := reply.([]any)
		want := State{number(list[0]) == 1, int(number(list[1])), duration(number(list[2])), list[3].(string)}
		if len(list) != 4 || st != want {
			t.Errorf("%v is read as %+v, want %+v", reply, st, want)
		}
	})
}

func FuzzParseRenewed(f *testing.F) {
	for _, s := range replySeeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		reply := (&fuzzed{data}).value(0)
		holds := []Renewal{{Keys: KeysOf("a")}, {Keys: KeysOf("b")}, {Keys: KeysOf("c")}}
		if err := parseRenewed(reply, holds, false); err != nil {
			strange(t, reply, err)
			return
		}
		failed := map[int64]string{}
		for _, entry := range reply.([]any) {
			failed[number(entry.([]any)[0])] = entry.([]any)[1].(string) // the last says
		}
		for i, h := range holds {
			why, is := failed[int64(i+1)]
			if is == (h.Err == nil) || is && (why == "") != errors.Is(h.Err, ErrGone) {
				t.Errorf("%v: hold %d gets %v", reply, i+1, h.Err)
			}
			if is && why != "" && Unanswered(h.Err) {
				t.Errorf("%v: the error of hold %d is one of Redis's, and Unanswered", reply, i+1)
			}
			delete(failed, int64(i+1))
		}
		if len(failed) > 0 {
			t.Errorf("%v: nobody hears of %v", reply, failed)
		}
	})
}

// Every valid answer round-trips, the largest and the smallest numbers too.
func TestReply_EveryAnswerRoundTrips(t *testing.T) {
	parse := func(reply any) (Answer, error) { return aParser(&acquires).parse(reply, nil) }
	for _, n := range []int64{0, 1, 7, 1<<53 - 1, math.MaxInt64} {
		for _, value := range []any{n, strconv.FormatInt(n, 10)} { // GET gives text, INCR a number
			if a, err := parse([]any{int64(1), value}); err != nil || a != (Answer{Held: true, Token: n}) {
				t.Errorf("{1, %v} is read as %+v, %v", value, a, err)
			}
		}
		if a, err := parse([]any{int64(0), n}); err != nil || a != (Answer{TTL: duration(n), Before: NotInLine}) || a.TTL < 0 {
			t.Errorf("{0, %d} is read as %+v, %v", n, a, err)
		}
	}
	if a, err := parse([]any{int64(0), int64(-1)}); err != nil || a != (Answer{TTL: NoExpiry, Before: NotInLine}) {
		t.Errorf("{0, -1} is read as %+v, %v", a, err)
	}
	if a, err := parse([]any{int64(-2), int64(0)}); err != nil || a != (Answer{}) {
		t.Errorf("{-2, 0} is read as %+v, %v", a, err)
	}
	if a, err := aParser(&unlocks).parse([]any{int64(1), int64(3)}, nil); err != nil || a != (Answer{Held: true, Receivers: 3}) {
		t.Errorf("a release that told three is read as %+v, %v", a, err)
	}
	for _, x := range []struct {
		kind  *kind
		reply []any
		want  Answer
	}{
		{&acquiresInTurn, []any{int64(1), int64(7)}, Answer{Held: true, Token: 7}},
		{&acquiresInTurn, []any{int64(0), []any{int64(9), int64(2), "1795425287975326", ""}}, Answer{TTL: 9 * time.Millisecond, Before: 2, Score: 1795425287975326}},
		{&acquiresInTurn, []any{int64(0), []any{int64(-2), int64(-1), int64(0), "a:1"}}, Answer{TTL: NoKey, Before: NotInLine, Head: "a:1"}},
		{&releases, []any{int64(1), []any{int64(3), int64(1), "5"}}, Answer{Held: true, Receivers: 3, Score: 5}},
		{&releases, []any{int64(1), []any{int64(-1), int64(2), int64(0)}}, Answer{Held: true, Untold: true, More: true}},
		{&releases, []any{int64(1), int64(3)}, Answer{Held: true, Receivers: 3}},
		{&releases, []any{int64(0), int64(0)}, Answer{}},
		{&leaves, []any{int64(0), int64(2)}, Answer{More: true}},
		{&leaves, []any{int64(1), int64(1)}, Answer{}},
	} {
		if a, err := aParser(x.kind).parse(x.reply, nil); err != nil || a != x.want {
			t.Errorf("of %v, %v is read as %+v, %v", x.kind.names[0], x.reply, a, err)
		}
	}
	for kind, replies := range map[*kind][]any{
		&acquiresInTurn: {
			[]any{int64(1), []any{int64(9), int64(2), int64(3), ""}}, []any{int64(0), []any{int64(9), int64(2), int64(3)}},
			[]any{int64(0), []any{int64(9), int64(2), int64(3), int64(4)}}, []any{int64(0), []any{"x", int64(2), int64(3), ""}},
		},
		&releases: {[]any{int64(0), []any{int64(9), int64(2), int64(3)}}, []any{int64(1), []any{int64(9), int64(2)}}, []any{int64(-2), int64(0)}},
		&leaves:   {[]any{int64(1), []any{int64(9), int64(2), int64(3)}}, []any{int64(2), int64(0)}},
		&acquires: {[]any{int64(0), []any{int64(9), int64(2), int64(3), ""}}},
		&unlocks:  {[]any{int64(1), []any{int64(9), int64(2), int64(3)}}},
	} {
		for _, reply := range replies {
			_, err := aParser(kind).parse(reply, nil)
			strange(t, reply, err)
		}
	}
	if a, err := parse([]any{int64(-1), "WRONGTYPE no"}); a != (Answer{}) || !redis.HasErrorPrefix(err, "WRONGTYPE") || Unanswered(err) {
		t.Errorf("an error in a reply is read as %+v, %v", a, err)
	}
	if s, err := parseState([]any{int64(0), int64(0), int64(-2), ""}); err != nil || s != (State{TTL: NoKey}) {
		t.Errorf("the state of nothing is read as %+v, %v", s, err)
	}
	for _, other := range []any{[]any{int64(-1), int64(5)}, []any{int64(2), int64(5)}, []any{int64(1)}, []any{int64(1), "x"}, []any{}, "OK", nil} {
		_, err := parse(other) // Redisson's {-1, token} is none of ours (P7)
		strange(t, other, err)
	}
}
