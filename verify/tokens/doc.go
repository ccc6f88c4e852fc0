// Package tokens searches through what can happen to the tokens of a quorum lock that are taken with the votes. It goes through
// every order of steps, within bounds, and looks for two tokens that are equal or do not grow. Package quorum says what is promised:
// tokens are unique, and if Y's acquire began after X's was complete, then Y's token is larger.
//
// # The rules
//
//	T1  A node looks at a proposal only in the command that takes the lock for the field there. A second copy of the command takes no
//	    token, and says that it took none.
//	T2  A node with a counter takes p1 if that is larger, and at least the node's time, and at most the time and s, or the counter and 1.
//	T3  A node without a counter takes p2 if that is from its time and a to its time and a and s. It never takes p1.
//	T4  The node sets its counter in the same step. Otherwise it votes yes, and tells its counter and its time.
//	T5  The client counts the nodes that count and took the same number. A majority makes the token. Who took p1 and who took p2 are
//	    not added up.
//	T6  A client's numbers come from the middle one of three clocks, or from a counter. (Bounds.Honest. Without that a client may
//	    propose any number, and T1 to T5 have to be enough, as long as clocks are right.)
//	T7  Otherwise there is a second round. The client proposes what is larger than the counters that were told, and at least the middle
//	    one of the times; and a more than that if a voter had no counter, also if it took p2 with the vote. With the proposal the client
//	    says whether that more is in it. The proposal goes to all that have voted yes, also too late for the number; to
//	    a late one that had no counter only with that more. A node
//	    accepts what is larger than its counter, if the field is there; without a counter it accepts only a number with that more in it.
//
//	T8  A proposal of the first round may be the last of several tokens in a row, of which the client uses all. T2 and T3 then ask of the first one what a
//	    number is to be at least, and of the last one what it is to be at most. A block that follows the counter is not too large. T4 sets the
//	    counter to the last. The second round gives one token.
//
// The rules are in rules.go, each as a function. Rules are the naive forms, each of which is refuted. The steps are in search.go: what a
// client, a node and the world do. A state is in state.go. An attempt that gives up has no step: it stays where it is, because of two
// attempts of which one has no token there is nothing to say.
//
// # What is searched
//
// There are three nodes, of which two decide, and two attempts, X and Y. Commands come to the nodes in any order, also late, also
// not at all, and once more if Bounds.Repeats says so. Any answer may be missing. A vote may take a node from the other attempt at
// any moment, as if that had been released or its lease were over. A node may refuse any number. A node restarts: then it forgets
// lock and counter, and does not count before the delay is over; it votes, takes and accepts meanwhile. A node forgets everything
// while it runs (FLUSHALL), and counts. Clocks are ahead or behind by Bounds.Skew; that of one node, or of a client, or all of them,
// say anything. Nodes are alike, so that states that differ only in the order of the nodes are one.
//
// # Units
//
// Times are ticks. There are 3 numbers in a tick, so that two attempts in one tick can take different ones, and more where an attempt proposes
// more than once: in the code a microsecond is shorter than any round. An acquire takes Bounds.Round ticks at most; 0 means that it is over in the tick in which it began.
// A block is Bounds.Block and 1 numbers, of which a tick has room for one of each attempt: in the code an acquire takes longer than 33 microseconds. Delay is how long a restarted node does not count, Ahead is a quarter of the delay of the code, and Slack is s, so that a is Ahead
// and Slack. Numbers need not be in the proportion that they have in the code; in the code Ahead is more than four times Slack.
//
// # How to run it
//
//	GOWORK=off go test ./tokens          searches of up to 8 million states, in half a minute
//	GOWORK=off go test ./tokens -all     also those of up to 20 million, in a few minutes
//	GOWORK=off go test -v ./tokens       prints how many states there are, and how each naive form comes to a wrong token
//
// A search that goes beyond its limit of states fails. States are told apart by a hash of 64 bits: with 15 million states the odds
// that any two are taken for one are 1 in 160,000.
//
// # What is not in the search
//
// More than three nodes. More than two attempts that are looked at; of a third one, Bounds.Others is a command that takes the lock
// and a number somewhere. Nodes that come back with old data. Clocks that are set, and uptime. Renewals, re-entries and leases:
// whether two holds overlap is another question. A proposal of a second round that comes after a larger one of the same attempt.
// What two FLUSHALL can do: the rules are refuted there (TestLimits), as package quorum says. T2 and T3 without an upper bound: the
// numbers are too many. T2 without a lower bound is refuted only from a state in the middle (TestPast).
package tokens
