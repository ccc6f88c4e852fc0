
-- renewEach renews the holds that KEYS and ARGV name. It returns what the script that begins with renew says, or READONLY.
local function renewEach()
  local failed = {}
  for i = 1, #ARGV / 2 do
    local why = renew(KEYS[i], ARGV[2 * i - 1], ARGV[2 * i], KEYS[#ARGV / 2 + i])
    if why and string.find(why, 'READONLY', 1, true) then
      return redis.error_reply("READONLY You can't write against a read only replica.")
    elseif why then
      failed[#failed + 1] = {i, why}
    end
  end
  return failed
end
