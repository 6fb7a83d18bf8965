#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>

#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::ops {

/// Sends NOTIFY over a connection of its own, made when it is first needed. Used by one thread,
/// except for interrupt().
class AlertNotify {
 public:
  explicit AlertNotify(const Options& options);

  /// Returns what went wrong, for people; empty: it is sent.
  std::string send(const std::string& payload);

  /// Breaks a call that waits, and all that come.
  void interrupt();

 private:
  const std::string channel_;
  std::atomic<bool> interrupted_{false};
  const postgres::SessionSettings settings_;
  std::mutex mutex_;
  std::unique_ptr<postgres::Session> session_;  // replaced under mutex_
};

}  // namespace pawl::ops
