-- import passes a lock on to a hold of another client, as transfer (transfer.lua) does, and tells the client that had it. The
-- message is a number that stands for the old field: clients that wait for a release take no notice of it (P58). Where the lease gets
-- shorter it tells them too.
--
-- lock, counter, lease, field, old, expiry, tokens   see transfer
-- channel, publish   see unlock in unlock.lua
--
-- returns as transfer does
local function import(lock, counter, lease, field, old, channel, publish, expiry, tokens)
  local left = redis.pcall('PTTL', lock)
  local verdict, value = transfer(lock, counter, lease, field, old, expiry, tokens)
  if verdict == 1 and type(left) == 'number' and left > tonumber(lease) then
    announce(channel, publish) -- who sleeps for as long as the old lease looks at the new one
  end
  if verdict == 1 then
    redis.pcall(publish, channel, string.format('%.0f', tonumber(string.sub(redis.sha1hex(old), 1, 12), 16) + 2)) -- 0 and 1 tell of releases
  end
  return verdict, value
end
