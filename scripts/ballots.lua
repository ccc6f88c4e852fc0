-- The operations of a batch on a server of a quorum, as those in batch.
local operations = {
  ['vote+'] = {vote, 2, true}, ['extend+'] = {extend, 2, true}, ['recount+'] = {recount, 4, true}, ['raise+'] = {raise, 3, true},
  ['look+'] = {look, 1, true}, withdraw = {withdraw, 4},
}
