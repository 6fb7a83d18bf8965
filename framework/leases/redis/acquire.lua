-- Takes the lease of a key for one attempt.
--
-- KEYS: holder, history
-- ARGV: owner, token, lease's ms, history's ms (0: for ever), payload hash, message (of which one the attempt is),
--       any payload ("1" or "0"), force ("1": COMPLETED is known to be wrong)
--
-- Returns
--   {"mine", attempt, unknown}  the caller is to make this attempt; unknown: so many ms ago began the first attempt of
--                               which nobody knows whether it did anything, -1: there is none
--   {"pending", owner, ms}      another one has it, for so long yet if it is not extended
--   {"completed"}               the history says so; where that is wrong, ask again with force
--   {"conflict", message}       an attempt for another payload, that of this message, is unknown
--
-- Asked again with the same owner and token it answers the same: the first answer may have been lost.
local owner, token = ARGV[1], ARGV[2]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function text(number)
  return string.format('%.0f', number)
end

local function keep_history()
  if tonumber(ARGV[4]) > 0 then
    redis.call('PEXPIRE', KEYS[2], ARGV[4])
  else
    redis.call('PERSIST', KEYS[2])
  end
end

local function mine(attempts, unknown)
  return {'mine', attempts, unknown and math.max(now - unknown, 0) or -1}
end

local holder = redis.call('HMGET', KEYS[1], 'owner', 'token')
local history = redis.call('HMGET', KEYS[2], 'state', 'owner', 'token', 'attempts', 'begun', 'unknown_since', 'payload',
                           'message')
local state = history[1]
local attempts = tonumber(history[4] or 0)
local begun = tonumber(history[5] or now)
local unknown = history[6] and tonumber(history[6])

if holder[1] then
  if holder[1] ~= owner or holder[2] ~= token then
    return {'pending', holder[1], math.max(redis.call('PTTL', KEYS[1]), 0)}
  end
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  return mine(math.max(attempts, 1), unknown)
end

-- HSET comes first where something is written: it is what Redis refuses when its memory is full, and only the first
-- write of a script is refused.
if state == 'PROCESSING' and history[2] == owner and history[3] == token then
  -- Its lease has ended meanwhile, and nobody has taken it.
  redis.call('HSET', KEYS[1], 'owner', owner, 'token', token)
  redis.call('PEXPIRE', KEYS[1], ARGV[3])
  keep_history()
  return mine(attempts, unknown)
end

if state == 'COMPLETED' and ARGV[8] ~= '1' then
  return {'completed'}
end

-- Whose lease has ended without a word may have called, or may be about to; what is COMPLETED and yet not recorded has
-- called.
if state == 'PROCESSING' or state == 'COMPLETED' then
  unknown = math.min(unknown or begun, begun)
end
if unknown and history[7] ~= ARGV[5] and ARGV[7] ~= '1' then
  return {'conflict', history[8] or ''}
end

redis.call('HSET', KEYS[2], 'state', 'PROCESSING', 'owner', owner, 'token', token, 'attempts', attempts + 1,
           'begun', text(now), 'payload', ARGV[5], 'message', ARGV[6])
if unknown then
  redis.call('HSET', KEYS[2], 'unknown_since', text(unknown))
end
keep_history()
redis.call('HSET', KEYS[1], 'owner', owner, 'token', token)
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return mine(attempts + 1, unknown)
