package room

// A Kind is in what locks differ for those who wait. All else is the shell's.
type Kind struct {
	// Once: an attempt without an answer may have taken any part of what is asked for. Its claim
	// is released, and the next attempt has a claim of its own (P43, P1).
	Once bool
	// Shared: several holds may be there, each with a room of its own, so that none of this
	// client's keeps its calls from asking.
	Shared bool
	// Together: who is granted the lock has all others in the queue ask beside it.
	Together bool
	// Passes bounds how many times in a row a hold passes the lock on to the client's next call.
	Passes int32
	// LocalPasses bounds the same for passes within the client, of which Redis is not told; 0 for
	// none.
	LocalPasses int32
	// Tries bounds the attempts of one call; 0 for as many as its wait allows.
	Tries int32
}
