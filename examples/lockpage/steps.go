package main

// steps are those of a night on call, as docs/operations.md has them.
var steps = []string{
	"**See who has it.** The red box of the page, `fencelock top` and `fencelock show NAME` tell the holder, since when, and how many wait. `fencelock ls --scan` finds the rest.",
	"**Is the holder alive?** A lease that stays above two thirds is renewed: its process runs. One whose client was last heard of long ago is of a process that is dead or frozen.",
	"**Dead or frozen: wait.** The lease runs out, 30 s with the defaults, and the next in the line has the lock. With a long lease, or none (`for ever`), go on with 6.",
	"**Alive: look at the process.** The page has its host and its process id. Its log and its goroutines say what it waits for.",
	"**End it in order.** SIGTERM, if the program calls `client.Shutdown`: its holds are unlocked, and the next one has the lock at once.",
	"**Force the lock open, last.** The button of the page, or `fencelock force-unlock NAME`. The former holder hears of it, and may be in the middle of a write: with a guard that write is refused, without one look at the data.",
}
