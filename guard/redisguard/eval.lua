
-- eval runs a script of the user's, which is the body of the function script above the guard.
--
-- KEYS  after those of the guard, the script's
-- ARGV  after those of the guard, the script's
return guarded(function()
  local keys, args = {}, {}
  for i = first.keys + 1, #KEYS do
    keys[i - first.keys] = KEYS[i]
  end
  for i = first.args + 1, #ARGV do
    args[i - first.args] = ARGV[i]
  end
  -- Lua's pcall, because redis.call in the script raises its errors: Redis makes a text of them, with their code.
  local ok, reply = pcall(script, keys, args)
  if ok or failed(reply) then
    return reply
  end
  local text = bare(tostring(reply))
  return redis.error_reply(string.find(text, '^%u+ ') and text or 'ERR ' .. text)
end)
