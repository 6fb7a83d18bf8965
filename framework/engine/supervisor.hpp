#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/context.hpp"
#include "engine/dead_letter_bell.hpp"
#include "engine/dead_letter_relay.hpp"
#include "engine/drain.hpp"
#include "engine/monitor.hpp"
#include "engine/observers.hpp"
#include "engine/pruner.hpp"
#include "engine/worker.hpp"
#include "handlers/router.hpp"
#include "kafka/client.hpp"
#include "kafka/membership.hpp"
#include "pawl/consumer.hpp"

namespace pawl::engine {

/// Runs one consumer: connects, joins the group, deals partitions out to the workers, and ends in
/// order. run() is the group thread: after the start it waits for nothing but Kafka's events.
class Supervisor final : private kafka::MembershipListener {
 public:
  Supervisor(const Options& options, const Registry& registry,
             std::vector<std::shared_ptr<Observer>> observers);
  ~Supervisor() override;

  RunResult run();
  void stop();  ///< from any thread

 private:
  using Clock = std::chrono::steady_clock;

  struct Revocation {
    std::set<Worker*> pending;  // guarded by revocation_mutex_
    Clock::time_point deadline;
  };

  // kafka::MembershipListener, on the group thread
  void on_assigned(std::vector<std::shared_ptr<kafka::PartitionStream>> streams) override;
  void on_revoked(const std::vector<TopicPartition>& partitions, bool lost) override;
  void on_kafka_error(kafka::ErrorKind kind, const std::string& text, bool fatal) override;
  void on_stray_record(const TopicPartition& partition) override;
  void on_commit_refused() override;
  std::function<void()> readable_callback(const TopicPartition& partition) override;

  bool connect();
  void start_workers();
  void loop();
  void finish_revocation();
  void serve_restarts();
  void commit_progress();
  void tell_kafka(const std::vector<std::shared_ptr<PartitionStatus>>& partitions, bool all);
  [[nodiscard]] bool drained();
  void say_what_is_awaited();
  [[nodiscard]] bool find_drain_goal();
  void say_drained() const;
  RunResult leave(RunResult result);
  [[nodiscard]] std::unique_ptr<kafka::Client> new_client(std::size_t partitions) const;
  void share_buffer();
  bool pause_before_retry(std::chrono::milliseconds delay);
  void emit(Step step, const std::string& detail) const;

  const Options& options_;
  const Registry& registry_;
  handlers::Router router_;
  const std::shared_ptr<DeadLetterBell> bell_;  ///< null: there is no dead_letters.topic
  Observers observers_;
  Reachability database_reachable_{observers_, Step::kDatabaseLost, Step::kDatabaseBack};
  Reachability kafka_reachable_{observers_, Step::kKafkaLost, Step::kKafkaBack};
  std::unique_ptr<kafka::Client> client_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<kafka::Membership> membership_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Monitor> monitor_;
  std::unique_ptr<Pruner> pruner_;          ///< null: retention.interval is zero
  std::unique_ptr<DeadLetterRelay> relay_;  ///< null: there is no dead_letters.topic

  std::map<TopicPartition, Worker*> owners_;  // group thread
  std::map<Worker*, std::size_t> load_;       // group thread
  std::mutex revocation_mutex_;
  std::shared_ptr<Revocation> revocation_;
  std::mutex restarts_mutex_;
  std::set<TopicPartition> restarts_;  // guarded by restarts_mutex_

  bool assigned_once_ = false;
  std::optional<Clock::time_point> say_awaited_at_;  ///< nullopt: said, or nothing to say
  std::optional<DrainGoal> drain_goal_;
  std::vector<std::string> left_behind_;  ///< by draining, as texts
  std::map<TopicPartition, std::int64_t> told_kafka_;
  Clock::time_point next_commit_{};
  std::optional<std::string> fatal_;

  std::mutex stop_mutex_;
  std::condition_variable stop_changed_;
  std::atomic<bool> stop_{false};
};

}  // namespace pawl::engine
