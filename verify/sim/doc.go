// Sim runs the library in virtual time: clients, callers, a Redis in memory and its faults, in one process and by one seed. Half an hour of
// leases and outages, as long as users have them, takes a second or two. See docs/verification.md.
//
// A seed makes a plan: what each caller wants and when, and which faults come. A world plays the plan in a testing/synctest bubble and
// writes down a history: what the callers saw, what the servers have, what the faults were. The judge reads the history.
package main
