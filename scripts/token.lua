-- take takes a token from the fencing counter, or several in a row. It returns the last one, or nil and an error.
--
-- counter  an integer: the last token that was taken
-- expiry   nil: the token is the counter's value and 1. Otherwise tokens have a floor: the token is also at least the
--          server's time in microseconds. The counter then expires so many milliseconds after the server's time
--          has reached its value, or never for 0
-- tokens   how many are taken; nil for one. Where it is given, an expiry of '' stands for nil
local function take(counter, expiry, tokens)
  local token, now
  expiry, tokens = expiry ~= '' and expiry, tokens or '1'
  if not expiry then
    token = redis.pcall('INCRBY', counter, tokens) -- before any other write: where Redis refuses this, nothing has changed
    if type(token) == 'table' then
      return nil, token
    end
  else
    local last = redis.pcall('GET', counter) or 0
    if type(last) == 'table' then
      return nil, last
    end
    if not string.match(last, '^%-?%d+$') then
      return nil, redis.error_reply('ERR value is not an integer or out of range')
    end
    last = tonumber(last)
    local time = redis.pcall('TIME')
    if time.err then
      return nil, time
    end
    now = time[1] * 1000000 + time[2]
    token = math.max(last, now - 1) + tokens
  end
  if token >= 9007199254740992 then -- 2^53 + 1 reads as 2^53 too
    return nil, redis.error_reply('ERR fencing counter has reached 2^53, where Lua cannot count exactly')
  end
  if expiry then
    local text = string.format('%.0f', token)
    local set
    if tonumber(expiry) > 0 then
      local ahead = math.max(token - now, 0) / 1000 -- until the clock has caught up, only the counter knows the last token
      set = redis.pcall('SET', counter, text, 'PX', string.format('%.0f', expiry + ahead))
    else
      set = redis.pcall('SET', counter, text)
    end
    if set.err then
      return nil, set
    end
  end
  return token
end

-- again returns the last token that was taken, or nil and an error. It is for the repeat of an operation that took that
-- token: nobody else has taken a token since. Where the counter was lost meanwhile, again takes a new token. Arguments as in
-- take.
local function again(counter, expiry, tokens)
  local token = redis.pcall('GET', counter)
  if not token then
    return take(counter, expiry, tokens)
  end
  if type(token) == 'table' then
    return nil, token
  end
  if not tonumber(token) then
    return nil, redis.error_reply('ERR value is not an integer or out of range')
  end
  return token
end

