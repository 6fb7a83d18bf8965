#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "payments_world.hpp"

namespace pawl::test {

/// A way in which a group agrees on who owns what, as lines of the [kafka] section.
struct Protocol {
  const char* name;
  const char* config;
};

/// All that Kafka 4 has. Sessions are short, so that tests need not wait long for the dead.
inline const std::vector<Protocol> kProtocols{
    {"cooperative-sticky", "assignor = \"cooperative-sticky\"\nsession_timeout = \"3s\"\n"},
    {"range", "assignor = \"range\"\nsession_timeout = \"3s\"\n"},
    {"roundrobin", "assignor = \"roundrobin\"\nsession_timeout = \"3s\"\n"},
    {"KIP-848", "group_protocol = \"consumer\"\n"},
};

/// Those that the shared broker has: before Kafka 4 there is no KIP-848 that clients could use.
std::vector<Protocol> protocols();

/// Consumer processes of one world that join, leave and die. Remembers what those that are gone
/// have written. One thread.
class GroupOfProcesses {
 public:
  explicit GroupOfProcesses(PaymentsWorld& world) : world_(world) {}

  testing::ChildProcess& join(std::vector<std::string> arguments = {});
  /// SIGTERM; throws when the process does not leave cleanly.
  void leave_oldest() { leave(0); }
  void leave_newest() { leave(members_.size() - 1); }
  void leave_all();
  /// SIGTERM without waiting; leave_all() waits for these too.
  void send_away_oldest();
  /// SIGKILL.
  void kill_oldest() { kill(0); }
  void kill_newest() { kill(members_.size() - 1); }

  [[nodiscard]] std::size_t size() const { return members_.size(); }
  [[nodiscard]] testing::ChildProcess& newest() { return *members_.back(); }
  [[nodiscard]] bool all_running();

  /// Waits until exactly so many processes hold the world's partitions in the register.
  void wait_until_shared_by(int processes, std::chrono::milliseconds deadline);

  /// How often all that ever joined, or one of them, wrote a text.
  [[nodiscard]] int count(const std::string& text) const;
  [[nodiscard]] static int count_in(const testing::ChildProcess& process, const std::string& text);
  /// What they wrote that an operator would look at.
  [[nodiscard]] std::string problems() const;

 private:
  void leave(std::size_t index);
  void kill(std::size_t index);
  void retire(std::size_t index);
  static void require_clean_end(testing::ChildProcess& process);

  PaymentsWorld& world_;
  std::deque<std::unique_ptr<testing::ChildProcess>> members_;
  std::vector<std::unique_ptr<testing::ChildProcess>> leaving_;
  std::vector<std::unique_ptr<testing::ChildProcess>> gone_;
};

}  // namespace pawl::test
