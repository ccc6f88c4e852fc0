package engine

// A waitState is what a waiter in the queue of its client's waiters does at one moment.
type waitState uint8

const (
	queued     waitState = iota // behind other waiters of its client
	watching                    // the first of its client: it waits to be told something, or until it is to look
	yielding                    // called, and it leaves the lock for a moment to clients that are in no line
	ready                       // to ask Redis next
	asking                      // its own attempt is under way
	receiving                   // the hold before it passes the lock on to it by a command
	waitStates = iota
)

// A waitEvent is what changes the state of a waiter.
type waitEvent uint8

const (
	leads        waitEvent = iota // it is the first of its client now
	mayAsk                        // it was called, a release was heard, it is time to look, or a handoff has no answer
	yields                        // it was called while clients wait too that are in no line
	waitsOn                       // it is to wait to be told, or until a time; who is ready asks first
	lockGiven                     // it is not to ask: the hold before it has given it the lock
	attemptSent                   // its attempt has left
	handoffBegun                  // the hold before it passes the lock on to it
	commandOver                   // the attempt or the handoff has an answer, or none in time
	waitEvents   = iota
)

// never stands for a pair of state and event that does not happen.
const never waitState = 255

// waitTable has the state that follows, by state and event.
var waitTable = [waitStates][waitEvents]waitState{
	//           leads     mayAsk    yields    waitsOn   lockGiven attemptSent handoffBegun commandOver
	queued:    {watching, ready, never, never, never, never, receiving, never},
	watching:  {never, ready, yielding, watching, never, never, receiving, never},
	yielding:  {never, ready, yielding, watching, never, never, receiving, never},
	ready:     {never, ready, ready, ready, watching, asking, receiving, never},
	asking:    {never, never, never, never, never, never, never, watching},
	receiving: {never, ready, never, never, never, never, never, watching},
}

// on changes the waiter's state. A pair that never happens leaves it as it is.
func (w *waiter) on(e waitEvent) {
	if s := waitTable[w.state][e]; s != never {
		w.state = s
	}
}

// commandUnderWay tells whether the waiter waits for the answer to a command.
func (s waitState) commandUnderWay() bool { return s == asking || s == receiving }
