package scripts

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fencelock/fencelock/internal/test/redistest"
)

// readWriteMutants are scripts of read-write locks with one thing wrong, each of which TestReadWriteSequences has to notice. Those with Inv4 are to be
// noticed by what the storage accepts.
var readWriteMutants = []mutant{
	{"readers take no number (P48)", &readWriteText, "token, why = take(counter, expiry)\n      if not token then\n        return nil, why\n      end\n      phase =",
		"token = tonumber(redis.call('GET', counter) or 0)\n      phase =", "Inv2"},
	{"only who opens a phase takes a number (P48)", &readWriteText, "token, why = take(counter, expiry)\n      if not token then\n        return nil, why\n      end\n      phase =",
		"if mode == '' then\n        token, why = take(counter, expiry)\n      else\n        token = tonumber(redis.call('GET', counter) or 0)\n      end\n      phase =", "Inv2"},
	{"each reader takes a number (P48)", &readWriteText, "if not token then -- the first", "if true then -- the first", "Inv2"},
	{"readers take no number, as the storage sees it (P48)", &readWriteText, "token, why = take(counter, expiry)\n      if not token then\n        return nil, why\n      end\n      phase =",
		"token = tonumber(redis.call('GET', counter) or 0)\n      phase =", "Inv4"},
	{"only who opens a phase takes a number, as the storage sees it (P48)", &readWriteText, "token, why = take(counter, expiry)\n      if not token then\n        return nil, why\n      end\n      phase =",
		"if mode == '' then\n        token, why = take(counter, expiry)\n      else\n        token = tonumber(redis.call('GET', counter) or 0)\n      end\n      phase =", "Inv4"},
	{"each reader takes a number, as the storage sees it (P48)", &readWriteText, "if not token then -- the first", "if true then -- the first", "Inv4"},
	{"the phase is a number (P47)", &readWriteText, "phase = 't' .. string.format('%.0f', token)", "phase = string.format('%.0f', token)", "P47"},
	{"a reader has no key of its own (P46)", &readWriteText, "redis.pcall('SET', ownKey(lock, field), '1', 'PX', lease)", "{ok = 'OK'}", ""},
	{"the hash lasts as long as the last lease taken (P46)", &readWriteText, "tonumber(lease) > left and redis.pcall('PEXPIRE', lock, lease)", "redis.pcall('PEXPIRE', lock, lease)", "Inv1"},
	{"a renewal extends no hash (P46)", &readWriteRenewText, "lasting(lock, whole, lease)", "nil", "Inv1"},
	{"a renewal extends no key of its own (P46)", &readWriteRenewText, "redis.pcall('PEXPIRE', own, math.max(left, lease))", "redis.pcall('HDEL', lock, '#')", ""},
	{"a renewal looks for no key (P53)", &readWriteRenewText, "if there == 0 or left == -2 then", "if there == 0 then", "P53"},
	{"no chain (P49)", &readWriteWaitText, "local called, any = forward('read', line, publish)", "local called, any = 0, false", "Inv8"},
	{"who becomes the first behind a reader is not told (P49)", &readWriteWaitText, "if called == 0 and any then\n    near(line, publish)", "if false then\n    near(line, publish)", "P31"},
	{"a leave calls only where the lock is free (P49)", &readWriteLeaveText, "local called, any = forward(mode, line, publish)", "local called, any = 0, true\n  if mode == '' then\n    called = call(line, publish, 0, '', 0)\n  end", "Inv8"},
	{"a leave does not tell the next (P49)", &readWriteLeaveText, "elseif removed == 1 and any then", "elseif false then", "P31"},
	{"readers do not look at the line (P50)", &readWriteWaitText, "if mine and (not head or head == ticket) then", "if mine and (not head or head == ticket or reads(field)) then", "Inv14"},
	{"a try does not look at the line (P50)", &readWriteTryText, "redis.pcall('EXISTS', lock, line)", "redis.pcall('EXISTS', lock)", "Inv14"},
	{"a try to read passes those in the line (P50)", &readWriteTryText, "elseif there == 1 and", "elseif there > 0 and", "Inv14"},
	{"a late first one is taken out only while the lock is free (P49)", &readWriteWaitText, "if head == stale and lined('ZREM', line, head) == 1 then\n    tell(", "if head == stale and mode == '' and lined('ZREM', line, head) == 1 then\n    tell(", "Inv8"},
	{"a writer's call waits for a lock that is free (P49)", &readWriteText, "return mode == '' or (mode == 'read' and toRead)", "return mode == ''", ""},
	{"a reader's release frees the lock (P51)", &readWriteUnlockText, "local more, why = sweep(lock, enough)", "redis.pcall('PEXPIRE', lock, '0')\n  local more, why = false, nil", "Inv1"},
	{"a reader's release never looks at the others (P51)", &readWriteUnlockText, "if enough and type(left) == 'number' and left < enough then", "if true then", "P51"},
	{"a reader's release looks for any lease (P51)", &readWriteUnlockText, "if enough and left >= enough then", "if enough and left > 0 then", "P51"},
	{"a release leaves the hash as long as it was (P51)", &readWriteUnlockText, "redis.pcall('PEXPIRE', lock, most)", "redis.pcall('PTTL', lock)", "P51"},
	{"the key of a released reader stays", &readWriteUnlockText, "redis.pcall('PEXPIRE', own, '0')", "redis.pcall('EXISTS', own)", ""},
	{"only the first level of a JVM's thread counts", &readWriteUnlockText, "for level = 2, count do", "for level = 2, math.min(count, 1) do", "Inv1"},
	{"a read that is forced open takes a JVM's writer with it", &readWriteUnlockText, "if not reads(field) then\n      return true", "if false then\n      return true", "Inv1"},
	{"a release by force does not look at the others (P51)", &readWriteUnlockText, "enough = not forced and ", "enough = ", "P51"},
	{"a JVM's reads go with its write that is forced open", &readWriteUnlockText, "redis.pcall('HSET', lock, 'mode', 'read')", "redis.pcall('PEXPIRE', lock, '0')", "Inv1"},
	{"a release that nobody in the line hears is not told (P37)", &readWriteReleaseText, "if quiet and (called ~= 1 or refused) then", "if false then", "P37"},
	{"a writer takes what others read", &readWriteText, "return mode == '' or (mode == 'read' and toRead)", "return mode == '' or mode == 'read'", ""},
	{"a writer takes no number", &readWriteText, "token, why = take(counter, expiry)\n    if not token then\n      return nil, why\n    end\n  end\n  local written",
		"token = tonumber(redis.call('GET', counter) or 0)\n  end\n  local written", "Inv2"},
	{"a writer's release leaves the hash", &readWriteUnlockText, "removed == 1 and redis.pcall('HDEL', lock, 'mode') == 1 and", "removed == 1 and", "P51"},
	{"a reader that has the lock stays in the line", &readWriteWaitText, "lined('ZREM', line, ticket)\n  local called", "local called", "line"},
	{"the key of a name with a brace is not Redisson's (P46)", &readWriteText, "string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'", "'{' .. lock .. '}'", ""},
	{"a release does not call", &readWriteReleaseText, "local called = head and call(", "local called = not head and call(", "Inv8"},
}

// composeReadWrites makes the scripts of read-write locks of their texts again.
func composeReadWrites() {
	readWritesText = tokenText + lineText + readWriteText
	readWriteOpsText = barrierText + readWritesText
	readWriteAcquire = alone("acquire", readWriteOpsText)
	readWriteWait = alone("wait", readWriteOpsText+readWriteWaitText)
	readWriteTry = alone("try", readWriteOpsText+readWriteWaitText+readWriteTryText)
	readWriteUnlock = alone("unlock", readWriteOpsText+readWriteUnlockText)
	readWriteRelease = alone("release", readWriteOpsText+readWriteUnlockText+readWriteReleaseText)
	readWriteLeave = alone("leave", readWriteOpsText+readWriteUnlockText+readWriteLeaveText)
	readWriteBatch = newBatch(readWriteOpsText+readWriteWaitText+readWriteTryText+readWriteUnlockText+readWriteReleaseText+readWriteLeaveText,
		branches(&readWriteTries, &readWriteInTurn, &readWriteReleases, &readWriteAcquires, &readWriteUnlocks, &readWriteLeaves))
	readRenew = newScript(readWritesText + readWriteRenewText + renewEachText)
	readWriteInspect = newScript(readWritesText + readWriteUnlockText + readWriteInspectText)
}

func TestReadWriteMutants_AreComposedAsTheScriptsAre(t *testing.T) {
	all := func() []string {
		return []string{
			readWriteAcquire.sha, readWriteWait.sha, readWriteTry.sha, readWriteUnlock.sha, readWriteRelease.sha, readWriteLeave.sha, readWriteBatch.sha,
			readRenew.sha, readWriteInspect.sha,
		}
	}
	before := all()
	composeReadWrites()
	if !slices.Equal(before, all()) {
		t.Error("readwrite.go composes the scripts in another way now: change composeReadWrites")
	}
}

// TestMutants_OfReadWriteLocks shows that TestReadWriteSequences can fail.
func TestMutants_OfReadWriteLocks(t *testing.T) {
	rdb := redistest.Real(t).Client() // which runs the scripts many times faster than miniredis
	for n, m := range readWriteMutants {
		t.Run(strings.ReplaceAll(m.name, " ", "_"), func(t *testing.T) {
			m.swap(t)
			composeReadWrites()
			for seed := range uint64(1500) {
				if err := runReadWrite(rdb, fmt.Sprintf("m%d-%d-", n, seed), seed, m.reason == "Inv4"); err != nil {
					if !strings.Contains(lastLine(err), m.reason) {
						t.Fatalf("sequence %d failed, but not with %q: %v", seed, m.reason, err)
					}
					t.Logf("sequence %d: %s", seed, lastLine(err))
					return
				}
			}
			t.Fatal("not caught within 1,500 sequences")
		})
		composeReadWrites()
	}
}
