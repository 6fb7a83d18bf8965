-- The message is a dead letter: no attempt is made any more, unless it is replayed. May be repeated.
--
-- KEYS: holder, history
-- ARGV: owner, token, history's ms (0: for ever)
--
-- Returns 1; 0: the lease is not the caller's any more, or the attempt is completed, and nothing was changed.
local holder = redis.call('HMGET', KEYS[1], 'owner', 'token')
local history = redis.call('HMGET', KEYS[2], 'state', 'owner', 'token', 'begun', 'unknown_since')
-- A lease that has ended by itself, and that nobody has taken, is the caller's still.
if history[2] ~= ARGV[1] or history[3] ~= ARGV[2] or history[1] == 'COMPLETED'
    or (holder[1] and (holder[1] ~= ARGV[1] or holder[2] ~= ARGV[2])) then
  return 0
end
-- First what Redis allows when its memory is full: then it allows what follows in this script as well.
redis.call('DEL', KEYS[1])
if history[1] == 'PROCESSING' then
  -- It was not said how it ended.
  local since = math.min(tonumber(history[4]), tonumber(history[5] or history[4]))
  redis.call('HSET', KEYS[2], 'unknown_since', string.format('%.0f', since))
end
redis.call('HSET', KEYS[2], 'state', 'FAILED')
if tonumber(ARGV[3]) > 0 then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
else
  redis.call('PERSIST', KEYS[2])
end
return 1
