package main

import "slices"

// The breaks, by the invariant (Inv) or the protocol rule (P) that each violates. The scripts have
// more of their own, which TestMutants in package scripts runs against the model.
var mutants = slices.Concat(
	ofHolds, ofReleases, ofAttempts, ofSilence, ofOver, ofForce, ofWakeups, ofAsker, ofTokens, ofHandoffs, // a hold, from its acquire on
	ofPlaces, ofFirst, ofCalls, ofRefused, ofWaiting, // the line
	ofBatches, ofServers, ofQuorum, // what keeps the lock
	ofGuards, ofClient, ofSeen,
)
