-- report is what a server of a quorum says with every answer, found in the same step as the answer itself.
--
-- lock     hash: field <uuid>:<number> = hold count
-- counter  the fencing counter; nil where nobody asks for it
-- first    what the operation has to say besides
--
-- returns {first, holder, counter, seconds, microseconds, run, uptime}: the field of the hold that has the lock now, ''
--         for none; the counter, '0' where it is not there; the server's time; its run id, '' where it does not tell; for
--         how many seconds it has been up, -1 where it does not tell
local function report(lock, counter, first)
  local fields = redis.pcall('HKEYS', lock)
  if fields.err then
    return nil, fields
  end
  local holder = ''
  for _, field in ipairs(fields) do
    if string.sub(field, -1) ~= '#' then
      holder = field
      break
    end
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
  return {first, holder, last, time[1], time[2], string.match(info, 'run_id:([^\r\n]+)') or '',
    string.match(info, 'uptime_in_seconds:(%d+)') or '-1'}
end

