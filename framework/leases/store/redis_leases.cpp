#include "leases/store/redis_leases.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "ledger/register_view.hpp"
#include "redis/error.hpp"

namespace pawl::ledger {
namespace {

using Known = CallRecords::Known;

/// What PostgreSQL is doing with a key is over soon.
constexpr std::chrono::milliseconds kBusyWait{20};
/// So long Redis is not told what it need not know, once it has not answered.
constexpr std::chrono::seconds kSilence{1};

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
    case Known::kHeld:
      answer.how = LeaseAnswer::How::kHeld;
      break;
    case Known::kNothing:
    case Known::kBusy:
      answer.how = LeaseAnswer::How::kPending;
      answer.holder = "a transaction that records its outcome";
      answer.wait = kBusyWait;
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
  Extender(const RedisLeases& leases, const std::atomic<bool>& unwanted)
      : leases_(leases), unwanted_(unwanted), connector_(hurried(leases.settings_)) {}

  [[nodiscard]] std::vector<Extended> extend(const std::vector<KeyLease>& leases) override {
    return run([&](const RedisLeaseScripts& scripts) {
      return scripts.extend(*connection_, leases, leases_.settings_.time);
    });
  }

  [[nodiscard]] bool give_back(const LeftLease& left) override {
    return run([&](const RedisLeaseScripts& scripts) {
      return scripts.give_back_left(*connection_, left, leases_.settings_.history);
    });
  }

 private:
  template <typename Work>
  std::invoke_result_t<Work, const RedisLeaseScripts&> run(Work work) {
    try {
      const auto until = std::chrono::steady_clock::now() + leases_.settings_.time / 3;
      if (!connection_ || !connection_->alive()) {
        connection_ = connector_.connect(
            [&] { return unwanted_ || std::chrono::steady_clock::now() >= until; });
      }
      // Whoever holds a lease has asked for it by these.
      return work(*leases_.known_scripts());
    } catch (const redis::Error& error) {
      connection_.reset();
      throw LeasesAway(error.what());
    }
  }

  /// Several steps have to fit into a third of the time.
  static redis::Settings hurried(const Settings& settings) {
    auto server = settings.server;
    server.timeout = std::min(server.timeout, settings.time / 10);
    return server;
  }

  const RedisLeases& leases_;
  const std::atomic<bool>& unwanted_;
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

/// For what Redis is told and need not know. Nullopt: it could not be told.
template <typename Tell>
std::optional<bool> RedisLeases::tell(Tell tell) const noexcept {
  using Clock = std::chrono::steady_clock;
  try {
    const auto scripts = known_scripts();
    if (!scripts)
      return true;
    if (Clock::now().time_since_epoch().count() < silent_until_)
      return std::nullopt;
    auto connection = pool_->borrow();
    return tell(*scripts, *connection);
  } catch (const std::exception&) {
    silent_until_ = (Clock::now() + kSilence).time_since_epoch().count();
    return std::nullopt;
  }
}

LeaseAnswer RedisLeases::acquire(postgres::Session& session, LeaseRequest& request) const {
  const auto scripts = this->scripts(session);
  try {
    return ask(session, *scripts, request);
  } catch (const redis::Error& error) {
    if (error.code() == "WRONGTYPE") {
      // That is a matter of this key alone, and no time mends it.
      LeaseAnswer answer;
      answer.how = LeaseAnswer::How::kUnusable;
      answer.holder = scripts->history_name(request.lease.scope.id, request.lease.key);
      return answer;
    }
    throw LeasesAway(error.what());
  }
}

std::optional<std::string> RedisLeases::attempted_by(postgres::Session& session, const Scope& scope,
                                                     const std::string& key) const {
  const auto scripts = this->scripts(session);
  try {
    auto connection = pool_->borrow();
    return scripts->attempted_by(*connection, scope.id, key);
  } catch (const redis::Error& error) {
    throw LeasesAway(error.what());
  }
}

LeaseAnswer RedisLeases::ask(postgres::Session& session, const RedisLeaseScripts& scripts,
                             LeaseRequest& request) const {
  auto connection = pool_->borrow();
  auto asked = request_of(request);
  const auto take = [&] {
    try {
      return scripts.acquire(*connection, asked, settings_.history);
    } catch (const redis::Error& error) {
      request.may_be_given = error.kind() != redis::Error::Kind::kRefused;
      throw;
    }
  };
  auto answer = take();
  if (answer.how == RedisLeaseAnswer::How::kCompleted) {
    if (const auto known = records_.check_before_call(session, request); known != Known::kNothing)
      return answer_of(known);
    // It says what PostgreSQL does not have: a database that was restored, or the key is pruned.
    asked.force = true;
    answer = take();
  }
  if (answer.how != RedisLeaseAnswer::How::kMine)
    return answer_of(std::move(answer));
  try {
    // Behind the lease: whoever had it before may have finished meanwhile.
    const auto known = records_.check_before_call(session, request);
    if (known == Known::kNothing)
      return answer_of(std::move(answer));
    if (known == Known::kFinished) {
      (void)scripts.complete(*connection, request.lease, settings_.history);
    } else {
      (void)scripts.give_back(*connection, request.lease, GivenBack::kNotBegun, false,
                              settings_.history);
    }
    return answer_of(known);
  } catch (...) {
    // The partition is another owner's, for one: nobody is to wait for the end of this lease.
    request.may_be_given = !tell([&](const RedisLeaseScripts& known, redis::Connection& another) {
      return known.give_back(another, request.lease, GivenBack::kNotBegun, false,
                             settings_.history);
    });
    throw;
  }
}

std::unique_ptr<LeaseExtender> RedisLeases::make_extender(const std::atomic<bool>& unwanted) const {
  return std::make_unique<Extender>(*this, unwanted);
}

void RedisLeases::record(postgres::Request& request, const KeyLease& lease,
                         const LeaseSubject& subject, const Response& response,
                         const std::string& durable_commit) const {
  records_.record(request, lease, false, subject, response, durable_commit);
}

bool RedisLeases::recorded(const KeyLease& lease) const noexcept {
  return tell([&](const RedisLeaseScripts& scripts, redis::Connection& connection) {
           return scripts.complete(connection, lease, settings_.history);
         })
      .has_value();
}

bool RedisLeases::give_back(postgres::Session& /*session*/, const KeyLease& lease, GivenBack how,
                            bool settled, const Response& /*response*/) const {
  const auto told = tell([&](const RedisLeaseScripts& scripts, redis::Connection& connection) {
    return scripts.give_back(connection, lease, how, settled, settings_.history);
  });
  if (!told)
    throw LeasesAway("Redis did not respond, or rejected the request");
  return *told;
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
