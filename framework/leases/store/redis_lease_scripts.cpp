#include "leases/store/redis_lease_scripts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "leases/store/redis_scripts.hpp"
#include "message/digest.hpp"
#include "redis/reply.hpp"

namespace pawl::ledger {
namespace {

using std::chrono::milliseconds;

std::string number(milliseconds time) {
  return std::to_string(time.count());
}

std::string flag(bool value) {
  return value ? "1" : "0";
}

const char* outcome_of(GivenBack how) {
  switch (how) {
    case GivenBack::kNotBegun:
      return "not started";
    case GivenBack::kNotDone:
      return "not done";
    case GivenBack::kUnknown:
    case GivenBack::kDone:
      break;
  }
  return "unknown";
}

bool is_yes(const redis::Reply& reply, const redis::Connection& connection,
            std::string_view script) {
  if (reply.type != redis::Reply::Type::kInteger)
    throw redis::Error::malformed(connection.server(), script, redis::describe(reply.type));
  return reply.integer == 1;
}

bool change(const redis::Script& script, redis::Connection& connection, redis::ScriptCall call) {
  return is_yes(script.run(connection, std::move(call)), connection, script.name());
}

RedisLeaseAnswer parse(const redis::ItemReader& items, const redis::Connection& connection) {
  using How = RedisLeaseAnswer::How;
  RedisLeaseAnswer answer;
  const auto& how = items.text(0);
  if (how == "mine") {
    answer.how = How::kMine;
    answer.attempt = static_cast<std::uint32_t>(items.integer(1));
    if (const auto unknown = items.integer(2); unknown >= 0)
      answer.unknown_for = milliseconds(unknown);
  } else if (how == "pending") {
    answer.how = How::kPending;
    answer.holder = items.text(1);
    answer.wait = milliseconds(items.integer(2));
  } else if (how == "completed") {
    answer.how = How::kCompleted;
  } else if (how == "conflict") {
    answer.how = How::kConflict;
    answer.holder = items.text(1);
  } else {
    throw redis::Error::malformed(connection.server(), "acquire", how);
  }
  return answer;
}

/// An attempt is remembered for longer than its lease.
milliseconds at_least(milliseconds history, milliseconds lease) {
  return history == milliseconds{0} ? history : std::max(history, 2 * lease);
}

}  // namespace

RedisLeaseScripts::RedisLeaseScripts(std::string prefix, std::string database)
    : prefix_(std::move(prefix)),
      database_(std::move(database)),
      acquire_("acquire", redis_scripts::kAcquire),
      extend_("extend", redis_scripts::kExtend),
      release_("release", redis_scripts::kRelease),
      complete_("complete", redis_scripts::kComplete),
      fail_("fail", redis_scripts::kFail) {}

/// The braces make Redis keep both keys of a lease in one slot.
std::string RedisLeaseScripts::common_name(ScopeId scope, const std::string& key) const {
  return fmt::format("{}{{{}:{}:{}}}", prefix_, database_, static_cast<std::int64_t>(scope),
                     message::sha256_hex(key));
}

std::string RedisLeaseScripts::holder_name(ScopeId scope, const std::string& key) const {
  return common_name(scope, key) + ":holder";
}

std::string RedisLeaseScripts::history_name(ScopeId scope, const std::string& key) const {
  return common_name(scope, key) + ":history";
}

redis::ScriptCall RedisLeaseScripts::call(const KeyLease& lease,
                                          std::vector<std::string> more) const {
  const auto name = common_name(lease.scope.id, lease.key);
  redis::ScriptCall call{{name + ":holder", name + ":history"},
                         {lease.owner, std::to_string(lease.token)}};
  for (auto& argument : more)
    call.arguments.push_back(std::move(argument));
  return call;
}

RedisLeaseAnswer RedisLeaseScripts::acquire(redis::Connection& connection,
                                            const RedisLeaseRequest& request,
                                            milliseconds history) const {
  const auto reply = acquire_.run(
      connection,
      call(request.lease, {number(request.time), number(at_least(history, request.time)),
                           std::to_string(request.payload_hash), request.message,
                           flag(request.any_payload), flag(request.force)}));
  return parse({reply, connection.server(), acquire_.name()}, connection);
}

std::optional<std::string> RedisLeaseScripts::attempted_by(redis::Connection& connection,
                                                           ScopeId scope,
                                                           const std::string& key) const {
  const auto reply = connection.run({"HMGET", history_name(scope, key), "state", "owner"});
  if (reply.type != redis::Reply::Type::kArray || reply.items.size() != 2)
    throw redis::Error::malformed(connection.server(), "HMGET", redis::describe(reply.type));
  if (reply.items[0].text != "PROCESSING")
    return std::nullopt;
  return reply.items[1].text;
}

std::vector<Extended> RedisLeaseScripts::extend(redis::Connection& connection,
                                                const std::vector<KeyLease>& leases,
                                                milliseconds time) const {
  std::vector<redis::ScriptCall> calls;
  for (const auto& lease : leases)
    calls.push_back(call(lease, {number(time)}));
  std::vector<Extended> extended;
  for (const auto& reply : extend_.run_each(connection, calls)) {
    if (reply.is_error()) {
      // One whose keys are no leases is its own matter; whatever else is all of theirs.
      if (redis::error_code(reply.text) != "WRONGTYPE")
        throw connection.refused(reply, extend_.name());
      extended.push_back(Extended::kBusy);
      continue;
    }
    extended.push_back(is_yes(reply, connection, extend_.name()) ? Extended::kExtended
                                                                 : Extended::kLost);
  }
  return extended;
}

bool RedisLeaseScripts::give_back(redis::Connection& connection, const KeyLease& lease,
                                  GivenBack how, bool settled, milliseconds history) const {
  const auto reply =
      release_.run(connection, call(lease, {number(history), outcome_of(how), flag(settled)}));
  // What Redis has forgotten is nobody else's.
  constexpr std::int64_t kForgotten = 2;
  return is_yes(reply, connection, release_.name()) || reply.integer == kForgotten;
}

bool RedisLeaseScripts::give_back_left(redis::Connection& connection, const LeftLease& left,
                                       milliseconds history) const {
  return change(release_, connection,
                call(left.lease, {number(history), outcome_of(left.how), flag(left.settled)}));
}

bool RedisLeaseScripts::complete(redis::Connection& connection, const KeyLease& lease,
                                 milliseconds history) const {
  return change(complete_, connection, call(lease, {number(history)}));
}

bool RedisLeaseScripts::fail(redis::Connection& connection, const KeyLease& lease,
                             milliseconds history) const {
  return change(fail_, connection, call(lease, {number(history)}));
}

}  // namespace pawl::ledger
