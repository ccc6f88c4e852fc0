package scripts

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ErrGone is the error of a renewal that found the hold gone.
var ErrGone = errors.New("the hold is gone from Redis")

// errReply is the error of a reply that none of the scripts gives: something answers that is not Redis, or has other
// scripts.
var errReply = errors.New("scripts: unexpected reply")

// A replyError is the error of one operation or renewal, inside the reply of a script.
type replyError string

func (e replyError) Error() string { return string(e) }

// RedisError marks the error as go-redis marks error replies.
func (replyError) RedisError() {}

func unexpected(reply any) error { return fmt.Errorf("%w: %v", errReply, reply) }

// parsePair reads the two elements that an operation returns: the verdict and the rest, or -1 and an error.
func (op *Op) parsePair(first, second any) (Answer, error) {
	verdict, err := integer(first)
	if err != nil {
		return Answer{}, err
	}
	if why := Refusal((verdict + 2) / outsideTheLine); op.kind.lined && why > 0 && why <= Uncounted {
		op.outside = why
		verdict -= int64(why) * outsideTheLine
	}
	if why, failed := second.(string); failed && verdict == -1 {
		return Answer{}, explain(op.keys, replyError(why))
	}
	parse := op.parseAnswer
	if op.kind.ballot && !op.onlyLine() {
		parse = op.parseReport
	}
	a, err := parse(verdict, second)
	if err != nil {
		return Answer{}, err
	}
	a.Outside = op.outside
	return a, nil
}

// outsideTheLine times the Refusal is how much more a verdict is, of 1, 0 or -2, where the op was done without the line.
const outsideTheLine = 10

// parseAnswer reads the element that follows the verdict.
func (op *Op) parseAnswer(verdict int64, second any) (Answer, error) {
	switch second := second.(type) {
	case []any:
		if op.kind.family == semaphores && op.isSentOnce() && verdict == 1 {
			return parsePermit(second)
		}
		if op.kind.lined && !op.isLeave() {
			return op.parseLine(verdict, second)
		}
		if op.kind == &acquires && verdict == 0 {
			return parseOwn(second)
		}
	case string:
		if op.isUnlock() && verdict == 0 {
			return Answer{Own: second}, nil
		}
	}
	value, err := integer(second)
	if err != nil {
		return Answer{}, err
	}
	switch {
	case op.isWaiting() && verdict == 1:
		return Answer{Before: int(value)}, nil
	case op.isWaiting():
	case op.isLeave() && (verdict == 0 || verdict == 1):
		return Answer{More: value == boundReached}, nil
	case op.isLeave() && verdict == -2:
		return Answer{Stays: true}, nil
	case op.isLeave():
	case op.isUnlock() && verdict == 1:
		return Answer{Held: true, Receivers: max(int(value), 0), Untold: value < 0}, nil
	case op.isUnlock() && verdict == 0:
		return Answer{}, nil
	case op.isUnlock():
	case verdict == 1:
		return Answer{Held: true, Token: value}, nil
	case verdict == 0:
		return Answer{TTL: TTL(value), Before: NotInLine}, nil
	case verdict == -2:
		return Answer{}, nil
	}
	return Answer{}, unexpected([]any{verdict, second})
}

// parseOwn reads the list that an acquire returns which another hold of the same client kept from the lock.
func parseOwn(list []any) (Answer, error) {
	if len(list) == 2 {
		own, ok := list[1].(string)
		if value, err := integer(list[0]); err == nil && ok {
			return Answer{TTL: TTL(value), Before: NotInLine, Own: own}, nil
		}
	}
	return Answer{}, unexpected(list)
}

// boundReached is what call in line.lua returns when it has passed as many tickets as it may (P29).
const boundReached = 2

// parseLine reads the list that an op returns which has found clients in the line, or has entered the line.
func (op *Op) parseLine(verdict int64, list []any) (Answer, error) {
	var n [3]int64
	want, said := 3, int64(1)
	if op.isInTurn() {
		want, said = 4, 0
	}
	own, known := "", true
	if op.isInTurn() && len(list) == want+1 {
		own, known = list[want].(string)
		list = list[:want]
	}
	if len(list) != want || verdict != said || !known {
		return Answer{}, unexpected(list)
	}
	for i := range n {
		var err error
		if n[i], err = integer(list[i]); err != nil {
			return Answer{}, err
		}
	}
	if !op.isInTurn() {
		return Answer{Held: true, Receivers: max(int(n[0]), 0), Untold: n[0] < 0, More: n[1] == boundReached, Score: n[2]}, nil
	}
	head, ok := list[3].(string)
	if !ok {
		return Answer{}, unexpected(list)
	}
	return Answer{TTL: TTL(n[0]), Before: int(n[1]), Score: n[2], Head: head, Own: own}, nil
}

// parseBatch calls each for every op of a batch, with the op's part of the reply, or with an error.
func parseBatch(ops []*Op, reply any, err error, each func(*Op, Answer, error)) {
	list, ok := reply.([]any)
	if err == nil && (!ok || len(list) != 2*len(ops)) {
		err = unexpected(reply)
	}
	for i, op := range ops {
		if err != nil {
			each(op, Answer{}, explain(op.keys, err))
			continue
		}
		answer, failed := op.parsePair(list[2*i], list[2*i+1])
		each(op, answer, failed)
	}
}

func parseState(reply any) (State, error) {
	list, ok := reply.([]any)
	if !ok || len(list) != 4 {
		return State{}, unexpected(reply)
	}
	var n [3]int64
	for i := range n {
		var err error
		if n[i], err = integer(list[i]); err != nil {
			return State{}, err
		}
	}
	field, ok := list[3].(string)
	if !ok {
		return State{}, unexpected(reply)
	}
	return State{Locked: n[0] == 1, Count: int(n[1]), TTL: TTL(n[2]), Field: field}, nil
}

// parseRenewed reads the reply to a script that renews these holds; reports tells whether that has a report.
func parseRenewed(reply any, holds []Renewal, reports bool) error {
	list, ok := reply.([]any)
	if ok && reports && len(list) == reportLen {
		r, _, err := readReport(list)
		if err != nil {
			return err
		}
		list, ok = list[0].([]any)
		for i := range holds {
			holds[i].Report = r
		}
	} else if reports {
		ok = false
	}
	if !ok {
		return unexpected(reply)
	}
	for _, entry := range list {
		pair, ok := entry.([]any)
		if !ok || len(pair) != 2 {
			return unexpected(reply)
		}
		i, err := integer(pair[0])
		why, ok := pair[1].(string)
		if err != nil || !ok || i < 1 || i > int64(len(holds)) {
			return unexpected(reply)
		}
		hold := &holds[i-1]
		if why == "" {
			hold.Err = ErrGone
		} else if strings.Contains(why, "WRONGTYPE") { // something else has taken the key
			hold.Err = fmt.Errorf("%w: %w", ErrGone, explain(hold.Keys, replyError(why)))
		} else {
			hold.Err = explain(hold.Keys, replyError(why))
		}
	}
	return nil
}

// integer reads a number that Redis sends as an integer, or, as the value of a key, as a string.
func integer(v any) (int64, error) {
	switch v := v.(type) {
	case int64:
		return v, nil
	case string:
		if n, err := strconv.ParseInt(v, 10, 64); err == nil {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%w: %v is not an integer", errReply, v)
}

// MaxTTL is the longest lease that a client takes, and what TTL makes of a longer one, which somebody else has given: a sum with twice as
// much is still a time.Duration.
const MaxTTL = 100 * 365 * 24 * time.Hour

// TTL reads a PTTL reply, in milliseconds. -1 and -2 become NoExpiry and NoKey.
func TTL(ms int64) time.Duration {
	if ms < 0 {
		return time.Duration(ms)
	}
	return time.Duration(min(ms, MaxTTL.Milliseconds())) * time.Millisecond
}
