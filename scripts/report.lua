-- report makes what a server of a quorum says with every answer, in the same step as the answer itself.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter; nil where the operation does not need it
-- first    the first element, which is the operation's own
-- holder   the field of the hold that has the lock, where the operation knows it; nil where report is to look
--
-- returns {first, holder, counter, seconds, microseconds, run, uptime, members}: holder: the field of the hold that has the lock now,
--         '' for none. counter: its value, '0' where it is not there. seconds, microseconds: the server's time. run: the
--         server's run id. uptime: for how many seconds the server has been up by its clock, negative where the clock was set
--         back. Where the server does not tell both run is '', and uptime the server's words, '' where it has answered without them.
--         members: the server's record of the quorum's members, '' where it has none, or the user may not read it
--         nil, error
local function report(lock, counter, first, holder)
  local why
  if not holder then
    holder, why = holding(lock)
  end
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
  local info, words = redis.pcall('INFO', 'server'), ''
  if type(info) == 'table' then
    words = info.err
    info = ''
  end
  local run, uptime = string.match(info, 'run_id:([^\r\n]+)'), string.match(info, 'uptime_in_seconds:(%-?%d+)')
  if not (run and uptime) then
    run, uptime = '', words
  end
  local members = redis.pcall('GET', 'fencelock:quorum:members')
  return {first, holder, last, time[1], time[2], run, uptime, type(members) == 'string' and members or ''}
end

