#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "handlers/router.hpp"

namespace pawl::engine {

/// Which messages of a partition can have been running when the process ended that had it and did
/// not give it back. It is asked about each unfinished message in the log's order, before that
/// begins. Where messages run one after another those are the first ones, up to a pipeline or a
/// batch, and a call only if it is the first. Where they run side by side those are the first of
/// each order key, up to the number of threads; a call is one if it has a lease, because the window
/// may hold many calls that have none. Pure. One thread.
class SuspectChoice {
 public:
  struct Limits {
    std::int64_t end = 0;          ///< of the log; what came later cannot have run
    std::uint32_t at_once = 1;     ///< messages of the partition that ran together
    std::uint32_t ahead = 1;       ///< messages that may have been begun, finished ones left out
    bool side_by_side = false;     ///< in the order of their keys, else in the log's
    bool calls_with_code = false;  ///< some of its calls run the application's code
  };
  struct Candidate {
    std::int64_t offset = 0;
    /// Null: none matches.
    const handlers::Binding* handler = nullptr;
    handlers::Liability liability = handlers::Liability::kAny;
    bool calls = false;
    bool lease_tells = false;       ///< whether its call was begun
    std::uint32_t concurrency = 1;  ///< of its handler
    std::optional<std::string> order_key = {};
  };
  enum class Answer {
    kNo,
    kYes,
    kIfCalled,  ///< if another process has the lease of its key
  };

  /// No message is a suspect.
  SuspectChoice() = default;
  explicit SuspectChoice(Limits limits) : limits_(limits), open_(true), told_(false) {}

  /// It was asked about the message, or need not be.
  [[nodiscard]] bool knows(std::int64_t offset) const { return !open_ || offset <= asked_to_; }
  [[nodiscard]] Answer ask(const Candidate& candidate);
  /// The message is a suspect.
  void add(std::int64_t offset);
  [[nodiscard]] bool has(std::int64_t offset) const { return suspects_.contains(offset); }

  /// The register keeps the count of crashes of one suspect of a partition. So no other one runs
  /// before this one was survived without such a count, or is finished. `counted`: it has one.
  void go_first(std::int64_t offset, bool counted) {
    first_ = offset;
    first_counted_ = counted;
  }
  void went_first(std::int64_t offset) {
    if (first_ == offset)
      first_.reset();
  }
  /// Whether the suspect waits for the one that goes first, which is one or may still become one.
  [[nodiscard]] bool waits(std::int64_t offset) const {
    return first_ && *first_ != offset && (has(*first_) || !knows(*first_));
  }
  /// The one that goes first has not run for too long: the others do not wait for its first run.
  void give_up_first() {
    if (!first_counted_)
      first_.reset();
  }

  /// It is finished, perhaps ahead of the stored offset.
  void finished(std::int64_t offset) {
    suspects_.erase(offset);
    went_first(offset);
  }
  /// The stored offset has passed it.
  void passed(std::int64_t offset) {
    suspects_.erase(suspects_.begin(), suspects_.upper_bound(offset));
    if (first_ && *first_ <= offset)
      first_.reset();
  }
  /// No more messages are suspects, as when the end of the log was passed.
  void stop_asking() { open_ = false; }

  /// There are suspects, or there may be more.
  [[nodiscard]] bool is_going_on() const { return open_ || !suspects_.empty(); }
  /// How many suspects there were, once there are no more. Returned once; nullopt otherwise.
  [[nodiscard]] std::optional<std::size_t> take_end();

 private:
  [[nodiscard]] Answer ask_in_log_order(const Candidate& candidate);
  [[nodiscard]] Answer ask_side_by_side(const Candidate& candidate);

  Limits limits_;
  bool open_ = false;  ///< more messages may be suspects
  bool told_ = true;
  std::int64_t asked_to_ = -1;  ///< the last message that it was asked about
  std::uint32_t asked_ = 0;     ///< messages
  std::uint32_t running_ = 0;   ///< of them, that may have run and were not calls
  std::size_t added_ = 0;
  std::set<std::int64_t> suspects_;
  std::optional<std::int64_t> first_;  ///< the one that runs before the others
  bool first_counted_ = false;
  std::set<std::string> order_keys_;
  std::map<const handlers::Binding*, std::uint32_t> of_handler_;
};

}  // namespace pawl::engine
