package main

// reasons say, for a row of the table of goals, why it does not reach what was aimed for; by the row's what.
var reasons = map[string]string{
	"own keys, g = 1 / 64 / 1024: pairs against rueidislock as it comes":                      "one caller: a command travels on a goroutine of its own, so that a context can end the wait for it; many callers: the client's CPU, of which system calls and wake-ups, memory and the clock are the largest parts",
	"own keys, g = 64 / 1024: pairs against rueidislock with MaxFlushDelay 20 us":             "as above",
	"own keys, g = 64 / 1024: pairs against the same scripts over a plain pool":               "as above; the scripts alone make no holds, contexts or renewals",
	"own keys, g = 64 / 1024: pairs against redislock":                                        "as above; its lock is one SET, and it keeps no lease alive",
	"own keys, g = 64 / 1024: pairs against redsync":                                          "as above",
	"one key, 4 clients, g = 4 / 64 / 512: pairs against rueidislock":                         "a handoff within a client, or to a caller that comes back, is one round trip, of which most is the waking of two processes, as often as the machine can; one to another client, every 17th or 33rd, takes a message and two scripts. With 4 goroutines rueidislock leaves waiters hanging and goes again and again to the same client (least/most below 0.4), which is faster",
	"the same, g = 64 / 512: p99 wait against rueidislock":                                    "a client passes the lock on 32 times before the others get it: with 16 in a row p99 is a third less with 64 callers, and the rate 2 to 8% less",
	"the same, g = 64 / 512: commands a handoff":                                              "a handoff is one script with six commands inside; fewer need a script that does less",
	"the same, g = 64: least / most pairs, of clients / of goroutines":                        "the window holds few series of each client, and ends in the middle of one",
	"token blocks, one key, g = 64, empty / one GET / 1 ms inside: pairs against rueidislock": "empty: with 512 goroutines see the table of that mode; a hold, its contexts and the switch of goroutines are what is left. 1 ms: nearly all of a hold is the sleep itself, which Go makes 0.1 ms longer, and 0.2 where something arrives meanwhile; a lock that costs nothing, the sync.Mutex in that mode's table, is the bound: 1.29 to 1.36 in our runs",
	"own keys, g = 64 / 1024: pairs against Redisson on the JVM":                              "both share two CPUs with the server",
	"one key, 4 clients, g = 64 / 512: pairs against Redisson on the JVM":                     "both share two CPUs with the server",
	"all modes: hung waiters / overlaps / tokens out of order":                                "",
}
