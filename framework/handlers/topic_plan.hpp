#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pawl/handler.hpp"
#include "pawl/options.hpp"

namespace pawl::handlers {

/// Whether messages wait behind an earlier one of their record key that was set aside.
[[nodiscard]] constexpr bool parks(FailurePolicy policy) {
  return policy == FailurePolicy::kPark || policy == FailurePolicy::kRetryLater;
}

/// What the plans of its topics need to know of a handler.
struct HandlerTraits {
  std::string label;
  std::vector<std::string> topics;
  bool calls = false;    ///< its effect is outside of the database
  bool batches = false;  ///< it takes many messages in one transaction
  /// Its statements are known before its transaction begins. Only the Router knows it.
  bool plans_ahead = false;
  bool has_key = true;  ///< a template or code gives its messages an idempotency key
  MissingKey missing_key = MissingKey::kFail;
  FailurePolicy on_failure = FailurePolicy::kHalt;
  std::uint32_t concurrency = 1;
  std::uint32_t max_ahead = 1000;
  std::string order_by = "{key}";
};

/// How many messages of one handler share a transaction, or a way to the server.
enum class Grouping {
  kSingle,    ///< each goes alone
  kPipeline,  ///< each has a transaction of its own, and many of them travel together
  kBatch,     ///< many share one transaction
};

/// A handler of a topic.
struct PlannedHandler {
  std::size_t handler = 0;  ///< index among the configuration's handlers
  Grouping grouping = Grouping::kSingle;
};

/// What is decided about the messages of one topic entry (a name, or a pattern) before any of them
/// is read. While messages are processed a pooled session, a failed attempt, probation and size
/// only restrict it. This is the one place where these facts are derived.
struct TopicPlan {
  /// In which order messages are finished.
  enum class Order {
    kLog,  ///< in the log's order, calls included: the next message begins when the one before it
           ///< is finished, unless both are in one pipeline or batch
    kKey,  ///< messages with one text of `order_by` in the log's order, others in any
  };

  Order order = Order::kLog;
  bool calls = false;  ///< a handler calls out: its message goes alone, on another thread
  /// Messages of a partition that may be begun while an earlier one is not finished; 1: none.
  std::uint32_t max_ahead = 1;
  /// Messages of a partition, calls left out, that may be in progress when a process ends.
  std::uint32_t most_in_hand = 1;
  std::vector<PlannedHandler> handlers;  ///< in the configuration's order

  [[nodiscard]] bool has(Grouping grouping) const;
  [[nodiscard]] bool batches() const { return has(Grouping::kBatch); }
  [[nodiscard]] bool pipelines() const { return has(Grouping::kPipeline); }
};

/// A combination that is refused.
struct PlanRefusal {
  std::size_t handler = 0;
  std::string option;  ///< of that handler: "order_by"
  std::string shown;   ///< its value; empty: not shown
  std::string what;
  std::string fix;
};

/// What a configuration decides about its topics, and about each of their handlers.
struct TopicPlans {
  std::map<std::string, TopicPlan, std::less<>> by_entry;
  std::vector<PlanRefusal> refusals;  ///< each once
  /// What a reader of the options of one handler does not expect, because those of another one of
  /// its topic, or other options of its own, decide it. Each is a sentence that names the handler.
  std::vector<std::string> notes;

  /// Of an entry that has no handler: one with no messages.
  [[nodiscard]] const TopicPlan& of(std::string_view entry) const;
  /// Of the handler, in its topics; they do not differ unless they are refused.
  [[nodiscard]] Grouping grouping(std::size_t handler) const;
};

/// `handlers`: in the configuration's order. Pure.
[[nodiscard]] TopicPlans plan_topics(const std::vector<HandlerTraits>& handlers,
                                     const Options& options);

/// What the options themselves say of their handlers, and the code that was registered under their
/// names. `registry` null: it is not known, as when a configuration is validated.
[[nodiscard]] std::vector<HandlerTraits> traits_of(const Options& options,
                                                   const Registry* registry);

/// What tables, alerts and errors call the handler.
[[nodiscard]] std::string label_of(const HandlerOptions& options, std::size_t position);

}  // namespace pawl::handlers
