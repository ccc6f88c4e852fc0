// Package migrating is the code of docs/migrating.md: the same deposit with redsync, with redislock and with fencelock, and what
// happens when two of them have one name.
package migrating
