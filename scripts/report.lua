-- report is what a server of a quorum says with every answer, found in the same step as the answer itself.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter; nil where nobody asks for it
-- first    what the operation has to say besides
--
-- returns {first, holder, counter, seconds, microseconds, run, uptime}: the field of the hold that has the lock now, ''
--         for none; the counter, '0' where it is not there; the server's time; its run id, and for how many seconds it has
--         been up by its clock, which is negative where that was set back; '' and '0' where it does not tell
local function report(lock, counter, first)
  local holder, why = holding(lock)
  if not holder then
    return nil, why
  end
  local last = counter and redis.pcall('GET', counter) or '0'
  if type(last) == 'table' then
    return nil, last
  end
  if not string.match(last, '^%d+$') then
    return nil, redis.error_reply('ERR value is not an integer or out of range')
  end
  local time = redis.pcall('TIME')
  if time.err then
    return nil, time
  end
  local info = redis.pcall('INFO', 'server')
  if type(info) == 'table' then
    info = '' -- a server that does not tell since when it runs
  end
  local run, uptime = string.match(info, 'run_id:([^\r\n]+)'), string.match(info, 'uptime_in_seconds:(%-?%d+)')
  return {first, holder, last, time[1], time[2], uptime and run or '', uptime or '0'}
end

