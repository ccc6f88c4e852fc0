// Command held measures what locks cost that nobody works on: 100,000 that are held and renewed, and 10,000 calls that
// wait. It starts its own Redis servers on loopback.
//
//	GOWORK=off go run ./held            everything, in about four minutes
//	GOWORK=off go run ./held -h         the flags
//
// It writes held.json, the rows for the table of what is to be reached, and held.md, all figures. CPU shares are those of
// one core; the client's are those of this whole process.
package main
