-- The operations of a batch on one server of a quorum, as operations.lua has those of a batch on one server. batch.lua follows.
local functions = {
  ['vote+'] = vote, ['extend+'] = extend, ['recount+'] = recount, ['raise+'] = raise, ['look+'] = look, withdraw = withdraw,
}
local shapes = {['vote+'] = 22, ['extend+'] = 22, ['recount+'] = 24, ['raise+'] = 23, ['look+'] = 21, withdraw = 4}
