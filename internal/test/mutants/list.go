package main

import "slices"

// The breaks, by the invariant (Inv) or the protocol rule (P) that each violates. The scripts have
// more of their own, which TestMutants in package scripts runs against the model.
var mutants = slices.Concat(
	ofHolds, ofHoldsInHand, ofReleases, ofAttempts, ofSilence, ofOver, ofForce, ofWakeups, ofAsker, ofTokens, ofHandoffs, // a hold, from its acquire on
	ofPlaces, ofFirst, ofCalls, ofRefused, ofWaiting, // the line
	ofBatches, ofServers, ofQuorum, ofQuorumLines, ofProposals, // what keeps the lock
	ofSemaphores, ofReadWriteLocks,
	ofGuards, ofClient, ofSeen,
)
