package main

// reasons say, for a row of the table of goals, why it does not reach what was aimed for; by the row's what.
var reasons = map[string]string{}
