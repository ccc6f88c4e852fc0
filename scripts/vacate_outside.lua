-- vacateOutside does what vacate (vacate.lua) does without the line.
--
-- last, field, channel, publish   see vacate
--
-- returns 1, receivers   released
--         0, 0           the hold is not there
--         nil, error
local function vacateOutside(last, _, field, channel, publish)
  local had, why = removeAny(last, field)
  if why then
    return nil, why
  end
  return had and 1 or 0, had and announce(channel, publish) or 0
end
