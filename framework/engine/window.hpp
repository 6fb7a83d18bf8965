#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>

#include "engine/head.hpp"
#include "engine/inbox.hpp"
#include "handlers/router.hpp"
#include "kafka/partition_stream.hpp"
#include "ledger/types.hpp"

namespace pawl::engine {

/// A message of a partition whose messages run side by side. While it runs it is in the hands of
/// another thread, which changes `head`; at any other time its partition's worker has it.
struct InWindow {
  std::shared_ptr<kafka::PartitionStream> stream;  ///< the record counts in its account
  Inbox::Item item;
  const handlers::Binding* binding = nullptr;   ///< nullptr: no handler's condition matches
  std::optional<std::string> order_key = {};    ///< nullopt: in any order
  Head head = {};                               ///< what is known from its attempts
  std::optional<ledger::Outcome> outcome = {};  ///< it is finished
  /// Offset of the message before it in its order key, if that was finished in this window.
  std::optional<std::int64_t> predecessor = {};
  /// Its window has let go of it: what comes of it is not asked for any more.
  bool dropped = false;
  bool begun = false;
  bool suspect = false;          ///< it runs alone (engine/probation.hpp)
  std::uint32_t lock_waits = 0;  ///< attempts in a row that waited for a lock in vain

  [[nodiscard]] std::int64_t offset() const { return item.record.offset(); }
  /// Code of the application may run for it.
  [[nodiscard]] bool runs_code() const { return binding == nullptr || binding->runs_code(); }
};

/// Messages of one partition in the log's order, some of which run side by side: which may begin,
/// and up to where all are finished. Those with one order key run one after the other; of a handler
/// no more than its concurrency at a time. Behind a suspect that is not finished only other
/// suspects begin, and what runs no code of the application: so after another crash those that can
/// be why are the first ones again. Knows no threads and no servers. One thread.
class Window {
 public:
  using Clock = std::chrono::steady_clock;
  using Entry = std::shared_ptr<InWindow>;

  /// `most`: messages. kafka.buffer bounds their bytes (kafka/fetch_buffer.hpp).
  explicit Window(std::size_t most) : most_(most) {}

  /// Behind all others. One with an outcome is finished already.
  void add(const Entry& entry);
  [[nodiscard]] bool full() const { return entries_.size() >= most_; }
  [[nodiscard]] bool empty() const { return entries_.empty(); }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] const InWindow& operator[](std::size_t index) const { return *entries_[index]; }

  /// The first message in the log's order that may begin now; it runs from then on. Null: none
  /// below that offset.
  Entry next(Clock::time_point now, std::int64_t below = std::numeric_limits<std::int64_t>::max());
  /// When next() may have one that it does not have now, if nothing else happens.
  [[nodiscard]] std::optional<Clock::time_point> due() const;

  // It runs no more:
  void finished(const Entry& entry, ledger::Outcome outcome);
  /// It begins again, not before `when`; those of its order key wait.
  void later(const Entry& entry, Clock::time_point when);
  /// Those that waited for a lock in vain may begin now.
  void lock_released(Clock::time_point now);
  /// It does not begin again in this window.
  void halted(const Entry& entry);

  [[nodiscard]] std::size_t running() const { return running_; }
  /// So many of the first are finished.
  [[nodiscard]] std::size_t prefix() const { return prefix_; }
  /// Messages at the end of the window that have not started and are not finished.
  [[nodiscard]] std::size_t unbegun() const;
  /// Drops the first ones, which are finished.
  void pop(std::size_t count);
  /// Drops the last ones, up to one that has begun or is finished.
  void drop_unbegun();
  /// Drops all; those that run are not waited for.
  void clear();

 private:
  using Ready = std::map<std::int64_t, Entry>;

  [[nodiscard]] static std::uint32_t slots(const InWindow& entry);
  void make_ready(const Entry& entry);
  [[nodiscard]] bool may_begin(const InWindow& entry) const;
  [[nodiscard]] static bool is_unbegun(const InWindow& entry);
  void count_prefix();

  const std::size_t most_;
  std::deque<Entry> entries_;
  std::size_t running_ = 0;
  std::size_t prefix_ = 0;
  std::map<const handlers::Binding*, Ready> ready_;
  std::map<const handlers::Binding*, std::uint32_t> busy_;  ///< slots in use
  /// Of handlers that run one message at a time, what is not finished.
  std::map<const handlers::Binding*, std::set<std::int64_t>> one_by_one_;
  std::set<std::int64_t> suspects_;  ///< that are not finished
  std::multimap<Clock::time_point, Entry> later_;
  /// Of each order key those that are not finished; the first one's turn it is.
  std::unordered_map<std::string, std::deque<Entry>> in_order_;
  /// Of each order key the offset of the last one in the window that was finished in it.
  std::unordered_map<std::string, std::int64_t> last_finished_;
};

}  // namespace pawl::engine
