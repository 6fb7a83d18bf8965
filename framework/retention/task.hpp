#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "engine/background_task.hpp"
#include "engine/bell.hpp"
#include "engine/context.hpp"
#include "postgres/session.hpp"
#include "retention/pass.hpp"

namespace pawl::engine {

/// Removes what retention lets go while a consumer runs: a pass may take minutes.
class RetentionTask final : public BackgroundTask {
 public:
  explicit RetentionTask(Context& context);
  /// Waits for the transaction in hand.
  ~RetentionTask() override;

  /// Whatever is left to remove waits for the next process.
  void stop(std::chrono::steady_clock::time_point deadline, bool finish) override {
    bell_.stop(deadline, finish);
  }

 private:
  void run();
  void pass();
  void tell(const RetentionReport& report);
  void warn_once(Warning warning, const std::string& about, const std::string& text,
                 std::string_view sqlstate = {});
  void emit(Step step, const std::string& text) const;

  Context& context_;
  std::unique_ptr<postgres::Session> session_;
  std::map<std::string, std::string> warned_;  ///< by what it was about

  Bell bell_;
  std::thread thread_;
};

}  // namespace pawl::engine
