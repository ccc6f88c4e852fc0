-- What a script calls redis, where the server has limits. The Go code puts this in front of each script.
--
-- refused   the words in which commands are refused, by the command, or by the command, a bar and its first argument
-- said      what is said in place of the server, in the same way
-- nobody    PUBLISH counts nobody
-- mixed     SPUBLISH is PUBLISH
-- declared  keys are those of KEYS alone
local function limited(server, refused, said, nobody, mixed, declared)
  local keyless = {ECHO = true, INFO = true, PING = true, PUBLISH = true, SPUBLISH = true, TIME = true}

  local function undeclared(name, ...)
    local last = (name == 'DEL' or name == 'EXISTS') and select('#', ...) or 1
    for i = 1, last do
      local found, used = false, (select(i, ...))
      for _, key in ipairs(KEYS) do
        found = found or key == used
      end
      if not found then
        return 'ERR script tried accessing undeclared key, key: ' .. used
      end
    end
  end

  local function pcall(name, ...)
    name = string.upper(name)
    local longer = name .. '|' .. string.upper(tostring((...)))
    local words = refused[name] or refused[longer] or declared and not keyless[name] and undeclared(name, ...)
    if words then
      return {err = words}
    end
    if said[name] or said[longer] then
      return said[name] or said[longer]
    end
    if mixed and name == 'SPUBLISH' then
      name = 'PUBLISH'
    end
    local reply = server.pcall(name, ...)
    if nobody and name == 'PUBLISH' and type(reply) == 'number' then
      return 0
    end
    return reply
  end

  local function call(...)
    local reply = pcall(...)
    if type(reply) == 'table' and reply.err then
      error(reply.err, 0)
    end
    return reply
  end

  return setmetatable({call = call, pcall = pcall}, {__index = server})
end
