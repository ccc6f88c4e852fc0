package main

// The breaks of what a client does in the line; those of the scripts are in list_line.go.
var ofWaiting = []mutant{
	{
		"P19: a client that is called for a place that it has not got keeps silent",
		"rlock/line.go", "		go q.client.leaveLine(q.rivals.keys, ghost)\n", "",
		"./rlock", "P19_",
	},
	{
		"P22: a client whose connection was away enters at the end",
		"rlock/place.go", "	p.again = p.ticket != \"\" && p.score != 0\n", "		p.again = false\n",
		"./rlock", "P22_",
	},
	{
		"P23: a second that was told to watch the first does not",
		"rlock/place.go", "		p.notice.watch = words[2]\n", "",
		"./rlock", "P24_TheHeadIsFrozen",
	},
	{
		"P24: who waits for the first one never takes it out",
		"rlock/place.go", "	return p.called\n", "	return \"\"\n",
		"./rlock", "P24_TheHeadIsFrozen",
	},
	{
		"P25: the first in the line does not listen on the lock's own channel",
		"rlock/stand.go", "		s.queue.listen(s.keys.Channel()) // and tries", "		// and tries",
		"./rlock", "P25_",
	},
	{
		"P25: a client that was called in vain waits before it listens",
		"rlock/stand.go", "first && (vain || p.firstFor() >= headListens || s.brief())", "first && (p.firstFor() >= headListens || s.brief())",
		"./rlock", "P25_CalledInVain",
	},
	{
		"P27: nothing is left to strangers",
		"rlock/place.go", "	return strangersPause\n", "	return 0\n",
		"./rlock", "P27_",
	},
	{
		"P27: pauses that nobody uses are repeated",
		"rlock/place.go", "now.Before(p.noPause) || ", "now.IsZero() || ",
		"./rlock", "P27_",
	},
	{
		"P27: a series beside strangers is as long as any",
		"rlock/series.go", "		most = min(most, besideStrangers)\n", "",
		"./rlock", "P27_Series",
	},
	{
		"P18: a client whose last caller has given up stays in the line",
		"rlock/stand.go", "		a.client.leaveLine(a.keys, ticket)\n", "		_ = ticket\n",
		"./rlock", "P31_",
	},
	{
		"P32: who is further back looks each second",
		"rlock/place.go", "	return min(max(2*p.last, poll<<min(quiet, 4)), most)\n", "	return poll\n",
		"./rlock", "P32_Looks",
	},
	{
		"P32: the first in the line waits for the end of the lease only",
		"rlock/place.go", "		return min(a.TTL+time.Millisecond, poll<<min(quiet, 4), most)\n", "		return a.TTL + time.Millisecond\n",
		"./rlock", "P32_ShortWaits",
	},
	{
		"Inv8: each call that leads puts off the look of the one before",
		"rlock/stand.go", "		s.sleep(max(p.left(), 0)) // to be called", "		s.sleep(s.client.poll) // to be called",
		"./rlock", "P32_ShortWaits",
	},
	{
		"Inv9: a queue lingers for ever",
		"rlock/line.go", "		r.lingering = time.AfterFunc(max(d, 1), q.lingered)\n", "		r.lingering = time.AfterFunc(24*365*time.Hour, q.lingered)\n",
		"./rlock", "LineLingers|Books",
	},
	{
		"P12: Shutdown waits for queues that linger",
		"rlock/client.go", "		q.hush()\n", "",
		"./rlock", "LineLingers",
	},
}
