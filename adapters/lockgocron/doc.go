// Package lockgocron runs the jobs of a gocron scheduler in one process of many.
//
// [Locker] locks each run of a job by the job's name: whichever process comes first runs it, and the others skip that run. [Elector] makes one
// process the leader, which runs all jobs.
//
//	client, err := rlock.New(rdb) // or quorum.New, on several servers
//	locker, err := lockgocron.NewLocker(client, lockgocron.WithMinimumHold(30*time.Second))
//	scheduler, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//	// at the end of the process, in this order:
//	scheduler.Shutdown()
//	locker.Close()
//	client.Close()
//
// Shutdown waits for the jobs that run, for 10 s by default. The Close of the client ends the renewals of a job that runs still, and another process
// may take its lock when the lease is over: set gocron.WithStopTimeout to what the longest job takes.
//
// # What to know of a Locker
//
// gocron unlocks when the job ends. The schedulers of several processes do not tick at the same moment: a job that takes a second is over when the
// next process ticks, finds the lock free, and runs the job once more. [WithMinimumHold] keeps the lock after such a job. Choose more than the
// schedulers may be apart, and less than the interval of the job. The schedulers of duration jobs may be a whole interval apart, because each counts
// from its own start: give such jobs a common start by gocron.WithStartAt, take cron expressions, or take an Elector.
//
// The key that gocron gives to a Locker is the name of the job. Without gocron.WithName that is the name of its function, which two jobs may share,
// and which another build may change. Name each job.
//
// gocron passes neither a token nor a context of the lock to the job. The context of the job does not end when the lock is lost, and gocron drops the
// error of Unlock: the client's log (rlock.WithLogger) and trace (rlock.WithTrace) tell of a lock that was lost. A job whose late write would do harm
// takes a fenced lock of its own, of another name, and shows the token to a guard.
//
// # What to know of an Elector
//
// gocron asks for the leader before each run, and not while a job runs. A leader that loses its lock in the middle of a job goes on with it,
// while another process may begin. [Elector.Leading] gives the job a context that ends then, and a token for a guard.
//
// A process leads until its Elector is closed, also when its scheduler was shut down: no process runs the jobs then. Close the Elector after the
// scheduler's Shutdown.
package lockgocron
