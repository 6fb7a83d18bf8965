-- Extends a lease from now on. Allocates nothing, so it works when the memory is full.
--
-- KEYS: holder, history
-- ARGV: owner, token, lease's ms
--
-- Returns 1: extended; 0: lost, the lease has ended or is another's.
local holder = redis.call('HMGET', KEYS[1], 'owner', 'token')
if holder[1] ~= ARGV[1] or holder[2] ~= ARGV[2] then
  return 0
end
redis.call('PEXPIRE', KEYS[1], ARGV[3])
-- The attempt must be remembered for longer than its lease.
local left = redis.call('PTTL', KEYS[2])
if left >= 0 and left < 2 * ARGV[3] then
  redis.call('PEXPIRE', KEYS[2], 2 * ARGV[3])
end
return 1
