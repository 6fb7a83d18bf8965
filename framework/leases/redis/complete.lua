-- The outcome of the attempt is recorded, and committed: nobody needs to call any more. May be repeated.
--
-- KEYS: holder, history
-- ARGV: owner, token, history's ms (0: for ever)
--
-- Returns 1; 0: the lease is not the caller's any more, and nothing was changed.
local holder = redis.call('HMGET', KEYS[1], 'owner', 'token')
local history = redis.call('HMGET', KEYS[2], 'owner', 'token')
-- A lease that has ended by itself, and that nobody has taken, is the caller's still.
if history[1] ~= ARGV[1] or history[2] ~= ARGV[2]
    or (holder[1] and (holder[1] ~= ARGV[1] or holder[2] ~= ARGV[2])) then
  return 0
end
-- First what Redis allows when its memory is full: then it allows what follows in this script as well.
redis.call('DEL', KEYS[1])
redis.call('HDEL', KEYS[2], 'unknown_since')
redis.call('HSET', KEYS[2], 'state', 'COMPLETED')
if tonumber(ARGV[3]) > 0 then
  redis.call('PEXPIRE', KEYS[2], ARGV[3])
else
  redis.call('PERSIST', KEYS[2])
end
return 1
