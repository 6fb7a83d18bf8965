#include "leases/store/redis_leases.hpp"

#include <fmt/format.h>

#include <utility>

#include "ledger/register_view.hpp"
#include "redis/error.hpp"

namespace pawl::ledger {
namespace {

using Known = CallRecords::Known;

/// A key that PostgreSQL holds is asked for again so often.
constexpr std::chrono::milliseconds kHeldWait{500};

RedisLeaseRequest request_of(const LeaseRequest& request) {
  RedisLeaseRequest asked;
  asked.lease = request.lease;
  asked.payload_hash = request.subject.payload_hash;
  asked.message = request.message;
  asked.time = request.time;
  asked.any_payload = request.any_payload;
  return asked;
}

LeaseAnswer answer_of(Known known) {
  LeaseAnswer answer;
  switch (known) {
    case Known::kFinished:
      answer.how = LeaseAnswer::How::kFinished;
      break;
    case Known::kParked:
      answer.how = LeaseAnswer::How::kParked;
      break;
    case Known::kNothing:
    case Known::kHeld:
      answer.how = LeaseAnswer::How::kPending;
      answer.holder =
          "an attempt of when leases were kept in PostgreSQL; `leases list` shows it, and a `run` "
          "with leases.store = \"postgres\" finishes it";
      answer.wait = kHeldWait;
      break;
  }
  return answer;
}

LeaseAnswer answer_of(RedisLeaseAnswer&& from) {
  LeaseAnswer answer;
  answer.attempt = from.attempt;
  answer.unknown_for = from.unknown_for;
  answer.holder = std::move(from.holder);
  answer.wait = from.wait;
  switch (from.how) {
    case RedisLeaseAnswer::How::kMine:
      answer.how = LeaseAnswer::How::kMine;
      break;
    case RedisLeaseAnswer::How::kPending:
      answer.how = LeaseAnswer::How::kPending;
      break;
    case RedisLeaseAnswer::How::kConflict:
      answer.how = LeaseAnswer::How::kConflict;
      break;
    case RedisLeaseAnswer::How::kCompleted:
      answer.how = LeaseAnswer::How::kFinished;
      break;
  }
  return answer;
}

}  // namespace

class RedisLeases::Extender final : public LeaseExtender {
 public:
  explicit Extender(const RedisLeases& leases)
      : leases_(leases), connector_(leases.settings_.server) {}

  [[nodiscard]] std::vector<Extended> extend(const std::vector<KeyLease>& leases) override {
    try {
      if (!connection_ || !connection_->alive())
        connection_ = connector_.connect();
      // Whoever holds a lease has asked for it by these.
      return leases_.known_scripts()->extend(*connection_, leases, leases_.settings_.time);
    } catch (const redis::Error& error) {
      connection_.reset();
      throw LeasesAway(error.what());
    }
  }

 private:
  const RedisLeases& leases_;
  redis::Connector connector_;
  std::unique_ptr<redis::Connection> connection_;
};

RedisLeases::RedisLeases(const std::string& schema, Settings settings)
    : settings_(std::move(settings)),
      schema_(schema),
      records_(schema),
      pool_(std::make_unique<redis::Pool>(settings_.server)) {}

std::shared_ptr<const RedisLeaseScripts> RedisLeases::known_scripts() const {
  const std::scoped_lock lock(mutex_);
  return scripts_;
}

/// The names of keys hold the database's id, which it tells once.
std::shared_ptr<const RedisLeaseScripts> RedisLeases::scripts(postgres::Session& session) const {
  if (auto known = known_scripts())
    return known;
  auto made =
      std::make_shared<const RedisLeaseScripts>(settings_.prefix, database_id(session, schema_));
  const std::scoped_lock lock(mutex_);
  if (!scripts_)
    scripts_ = std::move(made);
  return scripts_;
}

LeaseAnswer RedisLeases::acquire(postgres::Session& session, const LeaseRequest& request) const {
  const auto scripts = this->scripts(session);
  try {
    auto connection = pool_->borrow();
    auto asked = request_of(request);
    auto answer = scripts->acquire(*connection, asked, settings_.history);
    if (answer.how == RedisLeaseAnswer::How::kCompleted) {
      if (const auto known = records_.look_before_call(session, request); known != Known::kNothing)
        return answer_of(known);
      // It says what PostgreSQL does not have: a database that was restored, or the key is pruned.
      asked.force = true;
      answer = scripts->acquire(*connection, asked, settings_.history);
    }
    if (answer.how != RedisLeaseAnswer::How::kMine)
      return answer_of(std::move(answer));
    // Behind the lease: whoever had it before may have finished meanwhile. Where this throws, the
    // same lease is asked for again.
    const auto known = records_.look_before_call(session, request);
    if (known == Known::kNothing)
      return answer_of(std::move(answer));
    if (known == Known::kFinished) {
      (void)scripts->complete(*connection, request.lease, settings_.history);
    } else {
      (void)scripts->give_back(*connection, request.lease, GivenBack::kNotBegun, false,
                               settings_.history);
    }
    return answer_of(known);
  } catch (const redis::Error& error) {
    throw LeasesAway(error.what());
  }
}

std::unique_ptr<LeaseExtender> RedisLeases::make_extender(
    const std::atomic<bool>& /*unwanted*/) const {
  return std::make_unique<Extender>(*this);
}

void RedisLeases::record(postgres::Request& request, const KeyLease& lease,
                         const LeaseSubject& subject, const Response& response,
                         const std::string& durable_commit) const {
  records_.record(request, lease, false, subject, response, durable_commit);
}

/// For what Redis is told and need not know.
template <typename Tell>
bool RedisLeases::tell(Tell tell) const noexcept {
  try {
    const auto scripts = known_scripts();
    if (!scripts)
      return true;
    auto connection = pool_->borrow();
    return tell(*scripts, *connection);
  } catch (const std::exception&) {
    // The lease ends by itself.
    return true;
  }
}

void RedisLeases::recorded(const KeyLease& lease) const noexcept {
  (void)tell([&](const RedisLeaseScripts& scripts, redis::Connection& connection) {
    return scripts.complete(connection, lease, settings_.history);
  });
}

bool RedisLeases::give_back(postgres::Session& /*session*/, const KeyLease& lease, GivenBack how,
                            bool settled, const Response& /*response*/) const {
  return tell([&](const RedisLeaseScripts& scripts, redis::Connection& connection) {
    return scripts.give_back(connection, lease, how, settled, settings_.history);
  });
}

void RedisLeases::set_aside(const KeyLease& lease) const noexcept {
  (void)tell([&](const RedisLeaseScripts& scripts, redis::Connection& connection) {
    return scripts.fail(connection, lease, settings_.history);
  });
}

void RedisLeases::note_loss(postgres::Session& session, const KeyLease& lease,
                            const LeaseSubject& subject, std::uint32_t attempt,
                            bool returned) const {
  records_.note_loss(session, lease, subject, attempt, returned);
}

}  // namespace pawl::ledger
