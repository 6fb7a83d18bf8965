#include "engine/presence.hpp"

#include <fmt/format.h>

#include "engine/fingerprints.hpp"

namespace pawl::engine {
namespace {

constexpr std::chrono::milliseconds kInterval = std::chrono::milliseconds(ledger::kLiveProcess) / 4;

}  // namespace

Presence::Presence(const Options& options, const Registry& registry, ledger::ConsumerId consumer,
                   const std::string& owner, const Observers& observers, const StatusBoard& board)
    : schema_(options.postgres.schema),
      consumer_(consumer),
      owner_(owner),
      fingerprints_(fingerprints(options, registry)),
      processes_(schema_, consumer, owner),
      conditions_(schema_, consumer, owner),
      observers_(observers),
      board_(board) {}

bool Presence::tell(postgres::Session& session) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || left_ || Clock::now() < due_)
    return false;
  // Also when it fails: it is no reason to ask at every turn.
  due_ = Clock::now() + kInterval;
  processes_.tell(session, fingerprints_);
  tell_conditions(session);
  look(session);
  return true;
}

/// Writes nothing while there are no conditions, which is the normal case.
void Presence::tell_conditions(postgres::Session& session) {
  const auto conditions = board_.conditions();
  if (conditions.empty() && !has_conditions_)
    return;
  has_conditions_ = true;
  conditions_.tell(session, conditions);
  has_conditions_ = !conditions.empty();
}

void Presence::look(postgres::Session& session) {
  std::set<std::pair<std::string, std::string>> found;
  for (const auto& other : ledger::live_processes(session, schema_, consumer_)) {
    const auto mine = fingerprints_.find(other.topic);
    if (other.owner == owner_ || mine == fingerprints_.end() || mine->second == other.fingerprint)
      continue;
    if (!known_.contains({other.topic, other.owner})) {
      Event event{Step::kHandlersDiffer};
      event.topic = other.topic;
      const auto text = fmt::format(
          "process {} of this group handles {} in another way than this process {} (other {}). "
          "During a deployment this is normal. Otherwise give both the same configuration and "
          "program",
          other.owner, other.topic, owner_, ledger::difference(mine->second, other.fingerprint));
      event.detail = text;
      observers_.emit(event);
    }
    found.insert({other.topic, other.owner});
  }
  known_ = std::move(found);
}

void Presence::leave(postgres::Session& session) {
  const std::scoped_lock lock(mutex_);
  if (std::exchange(left_, true))
    return;
  processes_.leave(session);
  if (has_conditions_)
    conditions_.leave(session);
}

}  // namespace pawl::engine
