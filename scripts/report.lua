-- server is what this server has said of itself: its time in seconds and microseconds, its run, its uptime and its record, as report has them. A script
-- runs in one step, so that one answer is enough for all its operations.
local server

-- tells asks the server, once in a script. It returns nil, or an error. INFO has the time since Redis 6.2.
local function tells()
  if server then
    return nil
  end
  local info, words = redis.pcall('INFO', 'server'), ''
  if type(info) == 'table' then
    words = info.err
    info = ''
  end
  local function value(name, pattern)
    local _, last = string.find(info, name, 1, true) -- a pattern alone would be tried at each character
    return last and string.match(info, pattern, last + 1)
  end
  local run, uptime = value('run_id:', '^[^\r\n]+'), value('uptime_in_seconds:', '^%-?%d+')
  if not (run and uptime) then
    run, uptime = '', words
  end
  local now, time = value('server_time_usec:', '^%d+'), nil
  if now then
    time = {string.sub(now, 1, -7), string.sub(now, -6)}
  else
    time = redis.pcall('TIME')
    if time.err then
      return time
    end
  end
  local members = redis.pcall('GET', 'fencelock:quorum:members')
  server = {time[1], time[2], run, uptime, type(members) == 'string' and members or ''}
end

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
  why = tells()
  if why then
    return nil, why
  end
  return {first, holder, last, server[1], server[2], server[3], server[4], server[5]}
end
