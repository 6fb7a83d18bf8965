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

  /// Both limits are allowed values.
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

  /// The options of [failures] that depend on each other.
  void failures(const std::string& section, const FailureOptions& options);

  /// Whether keys exist until the last delayed retry. `option` sets the delays, `keys_option` the
  /// retention `keys`; zero: no limit.
  void retries_within(const std::string& option, const FailureOptions& options,
                      const std::string& keys_option, std::chrono::milliseconds keys);

  void one_of(const std::string& option, const std::string& value,
              const std::vector<std::string_view>& names, const std::string& also = "");

  /// A label that is stored in tables, logs, and Kafka: at most `most` bytes, no control
  /// characters, no space at either end.
  void label(const std::string& option, const std::string& value, std::size_t most);

  /// A program with its arguments, or nothing.
  void program(const std::string& option, const std::vector<std::string>& command);

  /// A topic's name. False: Kafka does not allow the name, and the problem was added.
  bool topic(const std::string& option, const std::string& name);

  /// A scope is a plain name of at most 255 bytes. Empty: the default scope.
  void scope(const std::string& option, const std::string& name);

  /// Templates, conditions, and statements can be parsed. These functions ignore empty texts.
  void key_template(const std::string& option, const std::string& text);
  void condition(const std::string& option, const std::string& text);
  void sql(const std::string& option, const std::string& text);
  /// Like sql(), for a statement that applies many messages at once.
  void batch_sql(const std::string& option, const std::string& text);
  /// In addition to sql() or batch_sql(): the statement can return a response. Only PostgreSQL
  /// knows the number of its columns.
  void response(const std::string& option, const std::string& text, bool batch);
  /// A statement without a message, so without placeholders.
  void query(const std::string& option, const std::string& text);

  [[nodiscard]] std::vector<Problem> problems() && { return std::move(problems_); }

 private:
  std::vector<Problem> problems_;
};

/// The options that every handler inherits, without the handlers.
[[nodiscard]] Settings common_settings(const Options& options);

/// Checks the ranges and words of the option table, for all sections.
void validate_plain(const Settings& settings, Validation& validation);
/// The same for the overrides of a handler. `name`: "handler[0]". `settings`: the options that it
/// inherits.
void validate_own(const Settings& settings, const HandlerOptions& handler, const std::string& name,
                  Validation& validation);

// Checks beyond a range:

/// `consumes`: a group is required.
void validate_kafka(const KafkaOptions& kafka, bool consumes, Validation& validation);
void validate_postgres(const PostgresOptions& postgres, Validation& validation);
/// [redis] and calls.lease_store.
void validate_redis(const Options& options, Validation& validation);

/// [idempotency], [dead_letters], [audit], [consumer], [alerts], and [monitoring].
void validate_behaviour(const Options& options, Validation& validation);
void validate_handlers(const Options& options, Validation& validation);

}  // namespace pawl::config
