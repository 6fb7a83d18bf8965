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

#include "engine/background_task.hpp"
#include "engine/context.hpp"
#include "engine/draining.hpp"
#include "engine/hands.hpp"
#include "engine/monitor.hpp"
#include "engine/observers.hpp"
#include "engine/pulse.hpp"
#include "engine/worker.hpp"
#include "handlers/router.hpp"
#include "kafka/client.hpp"
#include "kafka/membership.hpp"
#include "pawl/consumer.hpp"

namespace pawl::engine {

/// Runs one consumer: connects, joins the group, deals partitions out to the workers, and ends in
/// order. run() is the group thread: after the start it waits for nothing but Kafka's events. Wide
/// because all of that thread's state is its own: six of the methods answer Kafka's events, the
/// others are its start, its rounds and its end.
class Supervisor final : private kafka::MembershipListener {
 public:
  /// `tasks`: of what goes on beside the workers, in the order in which it begins.
  Supervisor(const Options& options, const Registry& registry,
             std::vector<std::shared_ptr<Observer>> observers, std::vector<MakeTask> tasks);
  ~Supervisor() override;

  RunResult run();
  void stop();                                                      ///< from any thread
  [[nodiscard]] std::vector<PartitionSnapshot> partitions() const;  ///< from any thread
  [[nodiscard]] std::chrono::milliseconds silent_for() const;       ///< from any thread
  [[nodiscard]] std::string unready() const;                        ///< from any thread
  [[nodiscard]] std::optional<std::size_t> leases_held() const;     ///< from any thread
  [[nodiscard]] std::vector<Condition> conditions() const;          ///< from any thread

 private:
  using Clock = std::chrono::steady_clock;

  /// Shared with the workers, which may end later than the supervisor's other parts.
  struct Revocation {
    std::mutex mutex;
    std::set<Worker*> pending;  // guarded by mutex
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
  void start_with(postgres::Session& session);
  void show_kafka_wait(postgres::Session& session);
  void make_context(ledger::Registration registration, ledger::FirstTopics first_topics);
  void start_workers();
  void loop();
  void finish_revocation();
  void serve_requests();
  void commit_progress();
  void tell_kafka(const std::vector<std::shared_ptr<PartitionStatus>>& partitions, bool all);
  void stop_tasks(Clock::time_point deadline, bool finish);
  void say_what_is_awaited();
  bool finish_workers(Clock::time_point interrupt_at);
  void leave_group();
  RunResult leave(RunResult result);
  [[nodiscard]] std::unique_ptr<kafka::Client> new_client(std::size_t partitions) const;
  void share_buffer();
  ledger::FirstTopics find_topics(postgres::Session& session,
                                  const ledger::Registration& registration);
  void follow_topics();
  bool nothing_to_drain();
  void require_topics_to_drain();
  void pause_before_retry(std::chrono::milliseconds delay);
  void emit(Step step, const std::string& detail) const;
  void warn(Warning warning, const std::string& detail) const;

  const Options& options_;
  const Registry& registry_;
  handlers::Router router_;
  Observers observers_;
  Reachability database_reachable_{observers_, Step::kDatabaseUnreachable,
                                   Step::kDatabaseReachable};
  Reachability kafka_reachable_{observers_, Step::kKafkaUnreachable, Step::kKafkaReachable};
  std::unique_ptr<kafka::Client> client_;
  StatusBoard board_;
  const std::string owner_;
  /// While connect() waits for Kafka; then the context's.
  std::unique_ptr<Presence> presence_;
  Pulse group_pulse_;  ///< rests before the first round and after the last
  Pulse monitor_pulse_;
  std::unique_ptr<Context> context_;
  std::unique_ptr<kafka::Membership> membership_;
  /// Outlives the workers' partitions; what it still runs then nobody waits for.
  std::unique_ptr<Hands> hands_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::unique_ptr<Monitor> monitor_;
  const std::vector<MakeTask> make_tasks_;
  std::vector<std::unique_ptr<BackgroundTask>> tasks_;

  std::vector<std::string> subscribed_;       // group thread
  std::map<TopicPartition, Worker*> owners_;  // group thread
  std::map<Worker*, std::size_t> load_;       // group thread
  std::shared_ptr<Revocation> revocation_;

  std::atomic<bool> assigned_once_{false};
  std::optional<Clock::time_point> say_awaited_at_;  ///< nullopt: said, or nothing to say
  std::optional<Draining> draining_;                 ///< with --drain, from the first poll on
  std::map<TopicPartition, std::int64_t> told_kafka_;
  Clock::time_point next_commit_{};
  std::optional<std::string> fatal_;

  mutable std::mutex stop_mutex_;
  std::condition_variable stop_changed_;
  std::string awaited_;                      ///< by connect(), for people; guarded by stop_mutex_
  std::weak_ptr<LeaseKeeper> lease_keeper_;  ///< the context's; guarded by stop_mutex_
  std::atomic<bool> stop_{false};
};

}  // namespace pawl::engine
