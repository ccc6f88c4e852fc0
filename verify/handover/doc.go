// Package handover searches through what can happen when a quorum lock goes from one client to the next by a call that names the field
// which was given up. The search goes through every order of steps, within bounds. It looks for two holders, for tokens that do not grow, and
// for an Unlock that says something wrong.
//
// # What is modelled
//
// There are three nodes, of which two decide. One of them is the home: it has the line of the clients that wait. Two or three attempts, X, Y and Z,
// each have a field of their own; each becomes a hold, or is given up. Each may be an attempt of any client, also of one that had the lock before.
//
// An attempt asks all nodes for their votes. A vote comes at any time, or never: one that comes when the attempt has won is that of a node which was
// asked late, or by the renewal that puts a hold on further nodes. A majority of yes makes a hold. An attempt may be given up at any time, whatever the nodes have
// answered: so the answer no is not in the search. Unlock, and giving up, send a release to each node. Each release comes at any time, again, or never, each by
// itself. A release that removes the field at the home may find somebody in the line: then the call names the field. From that moment on any attempt that begins
// may have been called with this name, also several: so a call may come late, twice or never. An attempt may also begin with no name, as by a look, or by a call
// without a name.
//
// A node has the lock for one field. It votes yes if it is free, if it has this field, or if it has the field that the vote names; that is dropped then.
//
// A ForceUnlock sees the field on some node. Its release comes to each node, or does not. A renewal asks all nodes. It asks those anew that have not got the
// field, as extend.go of package quorum does, and may find that the hold was forced open.
//
// An acquire takes a token, if Bounds.Tokens says so. A node has a counter, and no clock. A vote may bring a number, one more than the largest counter
// when the attempt began. A node takes the number in the step in which it takes the lock, if the number is larger than its counter. Otherwise there is a second round, with one more
// than the largest counter that came with a yes. verify/tokens has the rules of the tokens in full.
//
// # The rules
//
//	R6   The call names the field that was given up. A node that has the lock for exactly that field drops it for the client that was called.
//	R7   A client names only a field that the line named. It may also name a field of its own, but only when the Unlock of that field has ended.
//	R8   The line names a field only if its owner has given up all of it, for ever: the owner asks no node for a vote for the field any more, and counts no
//	     vote that comes. A late yes of an attempt that won joins the hold. It is never withdrawn alone. A ForceUnlock calls without a name.
//	R9   Unlock counts a node where the field is gone as released if the home has said, to this Unlock, that it called somebody with the name. Otherwise the
//	     node counts as lost, if it had said yes. Where the home has not answered, Unlock does not say lost: it says that it cannot tell.
//	R10  An Unlock releases on the home also while the home's vote is under way.
//	R11  Where clients have different homes, every node calls from a line of its own (Bounds.AllCall). Then the word of each node counts, and Unlock says lost
//	     only if all nodes have answered.
//
// The rules are in rules.go, each as a function. Rules are the naive forms, and Bounds say how much can happen. What a client, a node and the line do is in
// steps.go. A state is in state.go.
//
// R9 has another form (Rules.NodesTell). A node that drops a field for a client that was called remembers the field. A release of the field that finds it gone is told so, and the
// node counts as released. Any other node where the field is gone counts as lost. The home's word is not needed, and it does not matter whether the
// home has answered. TestNodesTell shows that this form holds where the first one is refuted (TestLimits).
//
// # What must hold
//
//	Exclusion  At no time two clients take the lock for their own: each from the answer that makes its majority to the beginning of its Unlock. A hold is
//	           not looked at any more when the release of a ForceUnlock has removed its field, and fewer than a majority had the field after that. With
//	           Bounds.ExemptAny it is not looked at any more when such a release has removed its field anywhere.
//	Order      Tokens are unique. If Y's acquire began after X's was complete, Y's token is larger.
//	SaysLost   Unlock says lost, and a renewal finds that the hold was forced open, only if a ForceUnlock has removed the field somewhere.
//	SaysNil    Unlock does not say nil where ForceUnlocks had removed the field on a majority before Unlock began. That is: on nodes whose yes the owner had
//	           heard, and to which no vote for the field was under way; and nobody was called with the name. With Bounds.NamedToo also if somebody was called.
//	GivenUp    A field that was given up never becomes a hold.
//	Nothing    An owner sends no more releases when all votes have come and no node has the field (Bounds.Settles). No node takes the lock for the field
//	           after that.
//
// # What is refuted
//
// TestNaive has the naive forms that are refuted, TestLimits what the rules do not promise, and TestHarmless the forms that are not refuted:
//
//   - A ForceUnlock whose release names the field takes the lock from a hold that has a majority left, as when the release reached the home alone. It breaks
//     nothing else: no other hold, and not the order. A caller who says that any ForceUnlock ends a hold finds nothing wrong with it.
//   - A late yes that is withdrawn alone, by name, breaks exclusion. Tokens grow all the same, by the counters: storage that checks them is safe.
//   - A late yes that is withdrawn alone, without a name, is refuted only with a renewal, that has found the field on this node: Unlock says lost.
//   - A vote that is asked for after Unlock began leaves a field that nobody releases. It breaks nothing else.
//   - A release that finds nothing, and the lock free, may call with the name or without.
//   - A ForceUnlock that has missed the home: the release at the home calls somebody with the name, and so Unlock says nil.
//   - A release that comes to the home twice before its Unlock is over, and between the two the vote: the first answer says that nobody was called, the
//     second release calls. So Unlock says lost. A client that has sent a release twice must not say lost.
//
// # How to run it
//
//	GOWORK=off go test ./handover          searches of up to 2 million states, in 20 s
//	GOWORK=off go test ./handover -all     also those of up to 10 million, in two minutes
//	GOWORK=off go test -v ./handover       prints how many states there are, and the shortest way to what is refuted
//
// A search that goes beyond its limit of states fails. States are told apart by a hash of 64 bits. The nodes that are not the home are alike, so that
// states that differ only in their order are one.
//
// # What is not in the search
//
// More nodes, and more than three attempts. Leases that run out, restarts, and clocks: package quorum says why two holds do not overlap there. Places in the
// line, and whether anybody is called at all: that is a matter of time, not of safety. Re-entries. A proposal of a token that comes when the acquire is
// complete. What Unlock says of three attempts, and three attempts with tokens and a ForceUnlock.
package handover
