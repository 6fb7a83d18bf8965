#pragma once

#include <pawl/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/option_table.hpp"
#include "config/problems.hpp"

namespace pawl::config {

/// Collects problems while validate() goes through the options.
class Validation {
 public:
  void add(Problem problem) { problems_.push_back(std::move(problem)); }
  void add(std::string option, std::string shown, std::string what, std::string fix,
           std::string also = "");

  /// Both bounds are allowed values.
  void range(const std::string& option, std::chrono::milliseconds value,
             std::chrono::milliseconds least, std::chrono::milliseconds most,
             const std::string& also = "");
  void range(const std::string& option, std::uint64_t value, std::uint64_t least,
             std::uint64_t most);
  void size_range(const std::string& option, std::size_t value, std::size_t least,
                  std::size_t most);

  /// retry_initial and retry_max of a section, whose ranges were checked before.
  void backoff(const std::string& section, std::chrono::milliseconds initial,
               std::chrono::milliseconds longest);

  /// What a section's options about failures say together.
  void failures(const std::string& section, const FailureOptions& options);

  /// Whether keys are there until the last of retry_later, which `option` says, or `keys_option`
  /// how long keys are kept: `keys`, zero for ever.
  void retries_within(const std::string& option, const FailureOptions& options,
                      const std::string& keys_option, std::chrono::milliseconds keys);

  void one_of(const std::string& option, const std::string& value,
              const std::vector<std::string_view>& names, const std::string& also = "");

  /// A label that goes into tables, logs and Kafka: not longer than `most` bytes, no control
  /// characters, no white space at either end.
  void label(const std::string& option, const std::string& value, std::size_t most);

  /// A program and its arguments, or nothing.
  void program(const std::string& option, const std::vector<std::string>& command);

  /// A topic's name; false: not one that Kafka allows, which was reported.
  bool topic(const std::string& option, const std::string& name);

  /// A scope is a plain name of at most 255 bytes; empty is the default one.
  void scope(const std::string& option, const std::string& name);

  /// Templates, conditions and statements can be understood; what is empty is nobody's business
  /// here.
  void key_template(const std::string& option, const std::string& text);
  void condition(const std::string& option, const std::string& text);
  void sql(const std::string& option, const std::string& text);
  /// As sql(), for a statement that takes many messages at once.
  void batch_sql(const std::string& option, const std::string& text);
  /// Beside sql() or batch_sql(): the statement can give a response. How many columns it returns
  /// only PostgreSQL can tell.
  void response(const std::string& option, const std::string& text, bool batch);
  /// A statement that has no message to take values from.
  void query(const std::string& option, const std::string& text);

  [[nodiscard]] std::vector<Problem> problems() && { return std::move(problems_); }

 private:
  std::vector<Problem> problems_;
};

/// What every handler has that says nothing itself; without the handlers, to be copied for each.
[[nodiscard]] Settings common_settings(const Options& options);

/// The ranges and words of the option table, of all sections.
void validate_plain(const Settings& settings, Validation& validation);
/// The same of a handler's own options, `name` being "handler[0]"; `settings`: of those that say
/// nothing.
void validate_own(const Settings& settings, const HandlerOptions& handler, const std::string& name,
                  Validation& validation);

// What is no plain range:

/// `consumes`: it needs a group.
void validate_kafka(const KafkaOptions& kafka, bool consumes, Validation& validation);
void validate_postgres(const PostgresOptions& postgres, Validation& validation);
/// [redis], and calls.lease_store.
void validate_redis(const Options& options, Validation& validation);

/// [idempotency], [dead_letters], [audit], [consumer], [alerts], [monitoring].
void validate_behaviour(const Options& options, Validation& validation);
void validate_handlers(const Options& options, Validation& validation);

}  // namespace pawl::config
