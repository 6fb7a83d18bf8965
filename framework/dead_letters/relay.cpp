#include "dead_letters/relay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "console/counted.hpp"
#include "engine/halt_texts.hpp"
#include "ledger/consumers.hpp"

namespace pawl::engine {
namespace {

using std::chrono::milliseconds;

/// Also finds what another process stored and did not live to send.
constexpr milliseconds kInterval{1000};
/// A letter after another is no reason to ask the database for each.
constexpr milliseconds kShortestInterval{50};
constexpr milliseconds kRetryInitial{1000};
constexpr milliseconds kRetryMax{30000};
constexpr milliseconds kPoll{100};
/// What holds our few rows holds them for a moment.
constexpr milliseconds kLockTimeout{1000};

constexpr milliseconds kLease{15000};
constexpr milliseconds kLeaseRenewal{3000};
/// With a renewal's time less than the lease, so that none is lost to one slow statement.
constexpr milliseconds kStatementTimeout{10000};

constexpr std::int64_t kLettersAtOnce = 200;
/// Of values; read as text, and copied by librdkafka, they take a few times that.
constexpr std::size_t kBytesAtOnce = std::size_t{4} << 20U;
/// Beside the value: key, headers, and those of ours.
constexpr std::size_t kRoomBesideValue = std::size_t{1} << 20U;

/// After so long without an answer Kafka is looked at anew, by another producer.
constexpr milliseconds kPatience{60000};
/// The letters sent beside one that Kafka could not take have mostly had the same answer by then.
constexpr milliseconds kGrace{2000};
constexpr milliseconds kRefusedRetry{60000};

LetterSize smaller(LetterSize size) {
  return size == LetterSize::kWhole ? LetterSize::kWithoutValue : LetterSize::kHeadersOfOurs;
}

postgres::SessionSettings settings(const Options& options) {
  auto settings = session_settings(options);
  settings.application_name = "pawl dead letters";
  settings.by_index = true;
  settings.lock_timeout = std::min(settings.lock_timeout, kLockTimeout);
  settings.statement_timeout = kStatementTimeout;
  return settings;
}

}  // namespace

DeadLetterRelay::DeadLetterRelay(Context& context)
    : context_(context),
      bell_(*context.frame.letter_stored),
      topic_(context.options.dead_letters.topic),
      feed_(context.options.postgres.schema, context.registration.consumer),
      thread_([this] { run(); }) {}

DeadLetterRelay::~DeadLetterRelay() {
  if (!bell_.stopping())
    stop(Clock::now(), false);
  thread_.join();
}

void DeadLetterRelay::emit(Step step, const std::string& text) const {
  Event event{step};
  event.detail = text;
  context_.observers.emit(event);
}

void DeadLetterRelay::warn(const std::string& text, std::string_view sqlstate) const {
  auto event = engine::warning_event(Warning::kDeadLetterPublishFailed, text, sqlstate);
  event.topic = topic_;
  context_.observers.emit(event);
}

/// A lost connection is the workers' to tell.
void DeadLetterRelay::tell(const postgres::Error& error) const {
  if (error.failure() == postgres::FailureClass::kConnection)
    return;
  warn(fmt::format("{}. Retrying{}", error.what(), rights_hint(context_.options.invocation, error)),
       error.sqlstate());
}

void DeadLetterRelay::run() {
  Backoff backoff(kRetryInitial, kRetryMax);
  auto least = kShortestInterval;
  auto most = kInterval;
  while (true) {
    bell_.wait(least, most);
    const bool last = bell_.stopping();
    if (last && !bell_.finish())
      return;
    const bool well = try_pass();
    if (last)
      return;
    if (well)
      backoff.reset();
    least = well ? kShortestInterval : backoff.next();
    most = well ? kInterval : least;
  }
}

bool DeadLetterRelay::try_pass() {
  try {
    return pass();
  } catch (const postgres::InDoubt&) {
    // Both a lease and a mark may be repeated.
    session_.reset();
  } catch (const postgres::Error& error) {
    tell(error);
    session_.reset();
  } catch (const std::exception& error) {
    warn(error.what());
    session_.reset();
    producer_.reset();
  }
  return false;
}

/// False: Kafka or the database does not take letters now.
bool DeadLetterRelay::pass() {
  if (!connect())
    return false;
  mark();
  if (confirmed_.empty() && !feed_.waiting(*session_, left_out()))
    return true;
  lease_due_ = {};
  if (!keep_lease())
    return true;
  const bool well = ready() && feed();
  // Who takes over must not find letters that Kafka has and that bear no mark.
  if (session_ && confirmed_.empty())
    feed_.lease().release(*session_, context_.owner);
  return well;
}

bool DeadLetterRelay::connect() {
  if (session_ && session_->alive())
    return true;
  const auto& options = context_.options;
  session_ = std::make_unique<postgres::Session>(settings(options));
  if (!ledger::still_registered(*session_, options.postgres.schema, options.kafka.cluster,
                                options.kafka.group, context_.registration)) {
    // Another database than the one we began with; the workers deal with that.
    session_.reset();
    return false;
  }
  return true;
}

// librdkafka would wait for a topic that is not there, or not allowed; so it is asked for first.
bool DeadLetterRelay::ready() {
  if (producer_)
    return true;
  try {
    if (!context_.kafka.describe({topic_}, kafka::kAnswerTimeout).contains(topic_)) {
      warn("the topic does not exist. Create it. The dead letters stay in pawl.dead_letters");
      return false;
    }
    const auto largest = context_.options.dead_letters.max_payload + kRoomBesideValue;
    producer_ = std::make_unique<kafka::Producer>(
        context_.options.kafka, largest,
        [this](int level, const std::string& facility, const std::string& text) {
          if (level <= 4)
            warn(fmt::format("librdkafka {}: {}", facility, text));
        });
    return true;
  } catch (const kafka::KafkaError& error) {
    warn(fmt::format("{}. The dead letters stay in pawl.dead_letters", error.what()));
    return false;
  }
}

// From the lowest id on in every pass: a letter with a lower one may be committed later.
bool DeadLetterRelay::feed() {
  std::int64_t after = 0;
  while (true) {
    const auto letters = feed_.next(*session_, after, left_out(), kLettersAtOnce, kBytesAtOnce);
    if (letters.empty())
      return true;
    after = letters.back().id;
    // Not what a crash of the database would take back: the lease is a commit that waits for the
    // disk.
    lease_due_ = {};
    if (!keep_lease())
      return true;
    const bool taken = send(letters);
    // It may still hold letters, which are sent again later.
    if (!taken)
      producer_.reset();
    if (!confirmed_.empty()) {
      emit(
          Step::kDeadLettersPublished,
          fmt::format("{} in topic {}",
                      cli::counted(std::ssize(confirmed_), "dead letter", "dead letters"), topic_));
    }
    if (!session_)
      return false;
    mark();
    if (!taken)
      return false;
    if (bell_.stopping() && (!bell_.finish() || bell_.overdue()))
      return true;
  }
}

/// False: Kafka does not take them, or another process does it now.
bool DeadLetterRelay::send(const std::vector<ledger::DeadLetter>& letters) {
  Batch batch;
  for (const auto& letter : letters)
    send(batch[letter.id] = {&letter, LetterSize::kWhole});
  auto heard = Clock::now();
  auto until = Clock::time_point::max();
  while (!batch.empty()) {
    for (const auto& delivery : producer_->deliveries(kPoll)) {
      heard = Clock::now();
      if (!settle(batch, delivery))
        until = std::min(until, heard + kGrace);
    }
    if (bell_.overdue() || Clock::now() > until || !still_ours())
      return false;
    if (Clock::now() - heard > kPatience) {
      warn(fmt::format("Kafka has confirmed nothing for {} s{}{}. Retrying",
                       kPatience.count() / 1000, producer_->problem().empty() ? "" : ": ",
                       producer_->problem()));
      return false;
    }
  }
  return until == Clock::time_point::max();
}

void DeadLetterRelay::send(const Sending& sending) {
  const DeadLetterRecord record(*sending.letter, context_.options.kafka.group, sending.size);
  producer_->send(topic_, record.view(), sending.letter->id);
}

/// False: no letter would be taken now.
bool DeadLetterRelay::settle(Batch& batch, const kafka::Delivery& delivery) {
  auto& sending = batch.at(delivery.tag);
  using Outcome = kafka::Delivery::Outcome;
  if (delivery.outcome == Outcome::kStored) {
    confirmed_.insert(delivery.tag);
    batch.erase(delivery.tag);
    return true;
  }
  if (delivery.outcome == Outcome::kTooLarge && sending.size != LetterSize::kHeadersOfOurs) {
    if (sending.size == LetterSize::kWhole)
      warn(
          "a dead letter is too large for the topic and is published without its value. Raise "
          "max.message.bytes");
    sending.size = smaller(sending.size);
    send(sending);
    return true;
  }
  batch.erase(delivery.tag);
  if (delivery.outcome != Outcome::kFailed) {
    refused_[delivery.tag] = Clock::now() + kRefusedRetry;
    warn(fmt::format("Kafka rejected dead letter {}: {}. All others are published", delivery.tag,
                     delivery.why));
    return true;
  }
  warn(fmt::format("{}{}{}. Retrying; the dead letters stay in pawl.dead_letters", delivery.why,
                   producer_->problem().empty() ? "" : ": ", producer_->problem()));
  return false;
}

bool DeadLetterRelay::keep_lease() {
  const auto now = Clock::now();
  if (now < lease_due_)
    return true;
  const bool ours = feed_.lease().take(*session_, context_.owner, kLease);
  lease_due_ = now + kLeaseRenewal;
  return ours;
}

// A database that is away meanwhile is no reason to let go of what Kafka is about to confirm.
bool DeadLetterRelay::still_ours() {
  try {
    return !session_ || keep_lease();
  } catch (const postgres::Error& error) {
    tell(error);
    session_.reset();
  } catch (const postgres::InDoubt&) {
    session_.reset();
  }
  return true;
}

void DeadLetterRelay::mark() {
  if (!confirmed_.empty())
    confirmed_ = feed_.mark(*session_, confirmed_);
}

ledger::DeadLetterFeed::Ids DeadLetterRelay::left_out() {
  std::erase_if(refused_, [now = Clock::now()](const auto& one) { return one.second < now; });
  auto ids = confirmed_;
  for (const auto& [id, until] : refused_)
    ids.insert(id);
  return ids;
}

}  // namespace pawl::engine
