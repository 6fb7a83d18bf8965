#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kafka/client.hpp"
#include "ledger/instant.hpp"
#include "ledger/register_view.hpp"
#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::dashboard {

/// One look at a partition.
struct Sample {
  std::int64_t processed = 0;
  std::int64_t base_offset = 0;     ///< another one: the counters began anew
  std::optional<std::int64_t> lag;  ///< nullopt: Kafka did not say where the log ends
};

/// The last looks at all partitions, at one distance in time. Any thread.
class Samples {
 public:
  static constexpr std::chrono::seconds kInterval{10};
  static constexpr std::size_t kMost = 90;  ///< a quarter of an hour
  /// A look that is older says nothing of now.
  static constexpr std::chrono::seconds kFresh{60};

  struct Look {
    std::chrono::steady_clock::time_point at = std::chrono::steady_clock::now();
    std::map<TopicPartition, Sample> partitions;
    std::map<TopicPartition, std::int64_t> ends;
    std::map<TopicPartition, std::int64_t> ends_before;  ///< cli::KafkaLook
    bool whole = true;                  ///< no partition is left out: the lag is that of all
    std::vector<std::string> problems;  ///< sentences: what could not be seen, or is not there
  };

  void add(Look look);
  void clear();

  /// What they say of a partition, or of all: nothing where the last one is too old.
  struct Course {
    std::optional<ledger::Instant> at;  ///< of the last look, by this machine's clock
    std::optional<std::int64_t> end;    ///< of the log, at the last look
    /// At the last look. Never computed with a row of another time: the row passes `end` as soon as
    /// a message arrives.
    std::optional<std::int64_t> lag;
    std::optional<std::int64_t> end_before;         ///< cli::stalled()
    std::optional<double> rate;                     ///< messages a second over all of `period`
    std::vector<std::optional<double>> rates;       ///< between each two looks
    std::vector<std::optional<std::int64_t>> lags;  ///< at each look
    std::chrono::seconds period{0};                 ///< between the first look and the last
  };
  struct View {
    std::map<TopicPartition, Course> courses;
    Course total;
    bool whole = false;  ///< the last look saw all partitions that there should be
    std::vector<std::string> problems;
  };
  [[nodiscard]] View view() const;
  /// Of one that the last look did not see: nothing.
  [[nodiscard]] Course course(const TopicPartition& partition) const;

 private:
  [[nodiscard]] bool fresh() const;
  [[nodiscard]] Course course_of(const TopicPartition& partition) const;
  [[nodiscard]] Course total() const;

  mutable std::mutex mutex_;
  std::deque<Look> looks_;  // guarded by mutex_
};

/// Looks every so often, on a thread of its own, once it was asked to; and no longer than an hour
/// after nobody has asked any more.
class Sampler {
 public:
  Sampler(const Options& options, Samples& samples);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Somebody looks at pages.
  void wanted();
  /// Ends. False: a look waits for a server still, and the destructor would wait for it.
  [[nodiscard]] bool finish();

  static constexpr std::chrono::hours kUnwantedAfter{1};

 private:
  void run();
  void look();
  [[nodiscard]] Samples::Look seen();

  const Options& options_;
  Samples& samples_;
  std::unique_ptr<postgres::Session> session_;
  std::unique_ptr<kafka::Client> client_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ending_ = false;                                             // guarded by mutex_
  bool ended_ = false;                                              // guarded by mutex_
  std::optional<std::chrono::steady_clock::time_point> wanted_at_;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace pawl::dashboard
