#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "loopback_listener.hpp"
#include "testing/postgres_wire.hpp"

namespace pawl::test {

/// PostgreSQL's messages (manual, "Message Formats"), as bytes.
namespace wire {

std::string message(char type, std::string_view body);
/// The answer of a statement that returns one row of texts.
std::string row(const std::vector<std::string>& columns);
std::string complete(std::string_view tag);
std::string error(std::string_view sqlstate, std::string_view text, std::string_view detail = "");
/// The last words of a server that leaves.
std::string fatal(std::string_view sqlstate, std::string_view text);
std::string notice(std::string_view text);

}  // namespace wire

/// What the scripted server does when a statement is executed.
struct Reply {
  /// Behind ParseComplete and BindComplete; when it is an error the server skips what follows up to
  /// the next Sync, as PostgreSQL does.
  std::string bytes = {};
  /// Closes the connection behind that.
  bool hang_up = false;
  /// Says nothing more, and keeps the connection.
  bool silent = false;
};

/// Speaks PostgreSQL's protocol to one client and answers by a script: for what a real server
/// answers only when it breaks, and never at a chosen byte. Knows nothing of SQL but how
/// transactions begin and end; what a statement does is proved on real servers. Any thread.
class ScriptedServer {
 public:
  ScriptedServer();
  /// Ends the connection.
  ~ScriptedServer();
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;

  [[nodiscard]] std::string url() const;

  /// From now on, whenever this text is executed. Else: what a statement without rows answers.
  void script(const std::string& sql, Reply reply);
  /// After this text is executed no more than so many bytes are sent; then the connection is
  /// closed.
  void cut_after(const std::string& sql, std::size_t bytes);

  /// The statements that were executed since the last call, each Sync as "Sync".
  [[nodiscard]] std::vector<std::string> executed();
  [[nodiscard]] bool has_executed(const std::string& sql) const;
  /// Bytes sent since the statement of cut_after() was executed.
  [[nodiscard]] std::size_t sent_behind_cut() const;

 private:
  void serve();
  void open(int client);
  void answer(int client, const testing::WireMessage& message);
  void execute(int client, const std::string& sql);
  void send(int client, std::string_view bytes);
  void hang_up(int client);
  [[nodiscard]] Reply reply_to(const std::string& sql) const;

  LoopbackListener listener_;
  testing::StatementTracker statements_;
  char status_ = 'I';      ///< of the transaction, as ReadyForQuery tells it
  bool skipping_ = false;  ///< up to the next Sync
  bool silent_ = false;

  mutable std::mutex mutex_;
  int client_ = -1;                       // guarded by mutex_
  std::map<std::string, Reply> replies_;  // guarded by mutex_
  std::string cut_at_;                    // guarded by mutex_
  std::optional<std::size_t> left_;       // guarded by mutex_; bytes until the cut
  std::size_t limit_ = 0;                 // guarded by mutex_
  std::vector<std::string> executed_;     // guarded by mutex_
  std::size_t sent_ = 0;                  // guarded by mutex_
  std::thread thread_;
};

}  // namespace pawl::test
