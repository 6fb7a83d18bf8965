#include "engine/drain_register.hpp"

#include "kafka/client.hpp"
#include "postgres/transaction.hpp"

namespace pawl::engine {
namespace {

constexpr std::chrono::milliseconds kInterval{1000};

}  // namespace

const DrainRegister::Rows* DrainRegister::rows() {
  if (Clock::now() >= next_) {
    rows_.reset();
    try {
      ask();
    } catch (const postgres::Error& error) {
      session_.reset();
      context_.database_reachable.failed(error.what());
    } catch (const postgres::InDoubt& error) {
      session_.reset();
      context_.database_reachable.failed(error.what());
    }
    next_ = Clock::now() + kInterval;
  }
  return rows_.get();
}

void DrainRegister::ask() {
  const auto& options = context_.options;
  if (!session_ || !session_->alive()) {
    auto settings = session_settings(options);
    settings.connect_timeout = std::min(settings.connect_timeout, kafka::kAnswerTimeout);
    settings.answer_timeout = kafka::kAnswerTimeout;
    settings.unwanted = &unwanted_;
    session_ = std::make_unique<postgres::Session>(settings);
  }
  auto rows = std::make_unique<Rows>();
  for (auto& row : ledger::read_register(*session_, options.postgres.schema,
                                         context_.registration.consumer, ""))
    rows->insert_or_assign(row.partition, std::move(row));
  // Others need not have waited for the disk.
  if (options.consumer.durability == Durability::kReplayable)
    postgres::flush_commits(*session_);
  rows_ = std::move(rows);
}

}  // namespace pawl::engine
