// Package migrating is the code that docs/migrating.md names: the same deposit with redsync, with redislock and with fencelock, and what
// happens when two of them have one name.
package migrating
