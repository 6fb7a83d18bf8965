#pragma once

#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "handlers/batch_handler.hpp"
#include "handlers/handler.hpp"
#include "handlers/leased_handler.hpp"
#include "handlers/topic_plan.hpp"
#include "message/condition.hpp"
#include "message/template.hpp"
#include "message/topic_entries.hpp"
#include "pawl/handler.hpp"
#include "pawl/options.hpp"
#include "postgres/frame.hpp"

namespace pawl::handlers {

/// Which part of the work on a handler's messages may be why a process ended.
enum class Liability {
  kAny,   ///< all of it
  kCall,  ///< its call, which runs the application's code under a lease, and nothing before it
  kNone,  ///< nothing: pawl itself calls, and no code of the application runs
};

/// One [[handler]] of the configuration, compiled: which messages, which key, what to run.
struct Binding {
  std::string label;
  std::optional<message::Condition> when;
  std::optional<message::Template> key_template;
  bool key_checked = false;
  const KeyFunction* key_function = nullptr;  ///< replaces the template
  const DuplicateFunction* on_duplicate = nullptr;
  std::string scope;  ///< empty: consumer and topic
  MissingKey missing_key = MissingKey::kFail;
  Conflict conflict = Conflict::kFail;
  std::size_t max_response = 0;  ///< bytes
  postgres::FrameSettings frame;
  FailureOptions failures;
  std::unique_ptr<Handler> handler;
  /// Its messages of one partition that may run side by side.
  std::uint32_t concurrency = 1;
  /// Messages with the same text run in the log's order.
  std::optional<message::Template> order_by;
  /// `handler`, where its effect is outside of the database; else nullptr.
  const LeasedHandler* leased = nullptr;
  OnUnknown on_unknown = OnUnknown::kCall;
  std::chrono::milliseconds remote_memory{0};  ///< zero: for ever
  bool calls_code = false;                     ///< its call is the application's code
  Liability liability = Liability::kAny;
  /// `handler`, where its messages go in batches; nullptr: each has a transaction of its own.
  const BatchHandler* batch = nullptr;

  /// A message whose key was processed before with another payload is a conflict, not a duplicate.
  [[nodiscard]] bool conflicts(std::int64_t payload_hash, std::int64_t processed_hash) const {
    return payload_hash != processed_hash && conflict == Conflict::kFail;
  }
  /// The lease of a message shows whether the application's code was called, and finding the lease
  /// runs none of that code.
  [[nodiscard]] bool lease_tells() const {
    return leased != nullptr && calls_code && key_function == nullptr;
  }
  /// Code of the application may run for its messages.
  [[nodiscard]] bool runs_code() const { return liability != Liability::kNone; }
  /// It may have to wait behind an earlier one of its record key.
  [[nodiscard]] bool may_park(const Message& message) const {
    return message.key() && parks(failures.on_failure);
  }
};

/// Finds the handler of a message. Shared by all workers; immutable but for what it remembers of
/// topics that patterns mean. Refers to the registry, which
/// outlives it.
class Router {
 public:
  /// Throws ConfigErrors for names that no code registered, and for texts that do not parse.
  Router(const Options& options, const Registry& registry);

  /// Names and patterns, each once.
  [[nodiscard]] const std::vector<std::string>& topics() const { return topics_; }
  [[nodiscard]] const message::TopicEntries& entries() const { return entries_; }
  /// The entry of the configuration that a topic belongs to: its name, or a pattern; empty: none.
  [[nodiscard]] std::string_view entry_of(std::string_view topic) const;

  /// The first handler of the topic whose condition holds, in the configuration's order; nullptr
  /// when none does. Throws message::MessageError when a condition cannot be evaluated, and before
  /// any is for a record whose headers cannot be read.
  [[nodiscard]] const Binding* route(const Message& message, message::JsonView& json) const;

  /// What is decided about the messages of the topic before any of them is read.
  [[nodiscard]] const TopicPlan& plan_of(std::string_view topic) const {
    return plans_.of(entry_of(topic));
  }
  [[nodiscard]] const TopicPlans& plans() const { return plans_; }
  /// The topic's handlers, in the configuration's order.
  [[nodiscard]] const std::vector<const Binding*>& bound_to(std::string_view topic) const;

  [[nodiscard]] const std::vector<std::unique_ptr<Binding>>& bindings() const { return bindings_; }

 private:
  void require_own_scopes(const Options& options) const;
  void plan(const Options& options, const Registry& registry);

  const message::TopicEntries entries_;
  mutable std::shared_mutex known_mutex_;
  /// By topic; what is in it stays. Guarded by known_mutex_.
  mutable std::map<std::string, std::string, std::less<>> known_;
  std::vector<std::unique_ptr<Binding>> bindings_;
  // By the configuration's entries:
  std::map<std::string, std::vector<const Binding*>, std::less<>> by_topic_;
  std::vector<std::string> topics_;
  TopicPlans plans_;
};

/// What in the handlers' key templates looks like a mistake; each once, and none blocks a start.
[[nodiscard]] std::vector<std::string> key_warnings(const Router& router);

}  // namespace pawl::handlers
