-- The attempt has ended without being recorded: the next one may begin. May be repeated.
--
-- KEYS: holder, history
-- ARGV: owner, token, history's ms (0: for ever), outcome, settled
--   outcome  "not started" (the attempt is not counted), "not done" (this attempt did nothing) or "unknown"
--   settled  "1": what earlier attempts did is known now as well, to be nothing
--
-- Returns 1; 0: the lease is not the caller's any more; 2: nothing is known of the key (any more). With 0 and 2 nothing
-- was changed.
local holder = redis.call('HMGET', KEYS[1], 'owner', 'token')
local history = redis.call('HMGET', KEYS[2], 'state', 'owner', 'token', 'attempts', 'begun', 'unknown_since')
local state = history[1]
if not state and not holder[1] then
  return 2
end
-- A lease that has ended by itself, and that nobody has taken, is the caller's still.
if history[2] ~= ARGV[1] or history[3] ~= ARGV[2] or (state ~= 'PROCESSING' and state ~= 'RELEASED')
    or (holder[1] and (holder[1] ~= ARGV[1] or holder[2] ~= ARGV[2])) then
  return 0
end

-- First what Redis allows when its memory is full: then it allows what follows in this script as well.
redis.call('DEL', KEYS[1])
if ARGV[4] == 'not started' and state == 'PROCESSING' then
  redis.call('HSET', KEYS[2], 'attempts', history[4] - 1)
end
if ARGV[4] == 'unknown' then
  local since = tonumber(history[5])
  if history[6] and ARGV[5] ~= '1' then
    since = math.min(since, tonumber(history[6]))
  end
  redis.call('HSET', KEYS[2], 'unknown_since', string.format('%.0f', since))
elseif ARGV[5] == '1' then
  redis.call('HDEL', KEYS[2], 'unknown_since')
end
redis.call('HSET', KEYS[2], 'state', 'RELEASED')
if tonumber(ARGV[3]) > 0 then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
else
  redis.call('PERSIST', KEYS[2])
end
return 1
