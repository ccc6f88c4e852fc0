// Package limits puts the limits of hosted, compatible and proxied servers in front of a Redis of the tests: what such a server refuses, in its words,
// in scripts and outside, and whom its PUBLISH counts.
//
// A [Profile] is what a document says, and not the engine: each of its limits names the document and its date. What the document does not say the
// profile does not have, and what works here is not proven to work there.
package limits
