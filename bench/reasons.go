package main

// reasons say, for a row of the table of goals, why it does not reach what was aimed for; by the row's what.
var reasons = map[string]string{
	"own keys, g = 1 / 64 / 1024: pairs against rueidislock as it comes":                          "one caller: a command travels on a goroutine of its own, so that a context can end the wait for it; many callers: the client's CPU, of which system calls and wake-ups, memory and the clock are the largest parts",
	"own keys, g = 64 / 1024: pairs against rueidislock with MaxFlushDelay 20 us":                 "as above",
	"own keys, g = 64 / 1024: pairs against the same scripts over a plain pool":                   "as above; the scripts alone make no holds, contexts or renewals",
	"own keys, g = 64 / 1024: pairs against redislock":                                            "as above; its lock is one SET, and it keeps no lease alive",
	"own keys, g = 64 / 1024: pairs against redsync":                                              "as above",
	"one key, 4 clients, g = 64 / 512: pairs against rueidislock":                                 "a handoff within a client, or to a caller that comes back, is one round trip, of which most is the waking of two processes, as often as the machine can; one to another client, every 17th or 33rd, takes a message and two scripts",
	"the same, g = 64 / 512: p99 wait against rueidislock":                                        "a client passes the lock on 32 times before the others get it: with 16 in a row p99 is a third less with 64 callers, and the rate 2 to 8% less",
	"the same, g = 64 / 512: commands a handoff":                                                  "a handoff is one script with six commands inside; fewer need a script that does less",
	"the same, g = 64: least / most pairs, of clients / of goroutines":                            "the window holds few series of each client, and ends in the middle of one",
	"own keys, g = 64 / 1024: pairs against Redisson on the JVM":                                  "both share two CPUs with the server",
	"one key, 4 clients, g = 64 / 512: pairs against Redisson on the JVM":                         "both share two CPUs with the server",
	"n clients with a caller each, empty, n = 4 / 16 / 64 / 256: pairs against the best of three": "redislock and redsync give the lock to whoever has just released it: two round trips, and no other process wakes; their least/most is 0.8 to 0. To hand it to another client takes a message and a round trip more. scripts-line, the same scripts without a library around them, has 0.41 / 0.50 / 0.50 / 0.53 of the best. The goal of 256 clients is 4 x redislock's 1,170 pairs a second on another machine; here redislock has 6,000 and redsync 7,500",
	"the same: p99 of a use against the best":                                                     "as above: with 4 and 16 clients 99 uses of 100 are of those few who take it again at once. Their longest waits are 0.2 s (redislock) and 1.2 s (redsync) with 4, ours 7 ms",
	"n clients, 2 ms inside, always wanted, n = 4 / 16 / 64 / 256: pairs against the best":        "as above: redsync does not hand the lock on, with a least/most of 0.3 to 0. scripts-line has 0.97 / 0.93 / 1.00 / 1.09; what is between is 0.1 ms of a handoff, in which a client's goroutines wake up",
	"the same with 2 ms always wanted: p99 of a use against the best":                             "256: a turn of 256 clients takes 0.70 s at 368 pairs a second, and p99 of even shares is no less",
	"n clients, empty, n = 4 / 16 / 64 / 256: commands a handoff":                                 "an acquire that finds the lock taken has to ask who has it, mark that hold, and enter (5 or 6 commands); the release tells the lock's channel, reads the first two and tells both (5); the acquire reads them, takes a token, the lock and its expiry, and leaves the line (6). Some find the lock free between two holders and read the line once more",
	"the same with 2 ms inside":                                                                   "as above",
	"the same with 2 ms inside, taken for 70% of the time":                                        "as above",
	"the same, empty / 2 ms / 70%, n = 1,000 against n = 16: commands a handoff":                  "with 1,000 clients a full turn takes three seconds, and each looks by itself meanwhile; at 70% with 16 clients a part of the acquires finds nobody there",
	"all modes: hung waiters / overlaps / tokens out of order":                                    "",
}
