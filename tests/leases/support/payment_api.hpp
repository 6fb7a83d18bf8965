#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace pawl::test {

/// One request that came.
struct ApiCall {
  std::string method;
  std::string target;
  std::map<std::string, std::string> headers;  ///< names in lower case
  std::string body;
  int number = 0;  ///< of those with its key, from 1
  /// The Idempotency-Key.
  [[nodiscard]] std::string key() const {
    const auto found = headers.find("idempotency-key");
    return found == headers.end() ? "" : found->second;
  }
  [[nodiscard]] const std::string& event() const { return headers.at("event-id"); }
  /// The same, or the key where there is none.
  [[nodiscard]] std::string name() const {
    const auto found = headers.find("event-id");
    return found == headers.end() ? key() : found->second;
  }
};

/// What becomes of it.
struct ApiAnswer {
  bool charge = true;
  int status = 200;
  std::string body = {};     ///< empty: the charge, as JSON
  std::string headers = {};  ///< whole lines
  /// The answer comes so much later.
  std::chrono::milliseconds delay{0};
  /// The charge is made, and the answer does not come before release().
  bool stall = false;
  /// The connection is closed instead of an answer.
  bool cut = false;
  /// There is no answer; the connection stays until the client closes it.
  bool hang = false;
  /// Instead of an answer made of the above: these bytes.
  std::string raw = {};
  /// The next request on the connection gets an answer with this body as soon as its first byte is
  /// there, and is not read.
  std::string early_next = {};
};

/// An HTTP API that charges cards, on this machine: counts the charges of each key, can recognise
/// repetitions by it or not, and does what a test tells it. GET /charges/KEY says whether there is
/// one. Each connection has a thread.
class PaymentApi {
 public:
  using Script = std::function<ApiAnswer(const ApiCall&)>;

  /// `port`: 0 is any that is free.
  explicit PaymentApi(
      bool dedupes, Script script = [](const ApiCall&) { return ApiAnswer{}; },
      std::uint16_t port = 0);
  ~PaymentApi();
  PaymentApi(const PaymentApi&) = delete;
  PaymentApi& operator=(const PaymentApi&) = delete;

  [[nodiscard]] int port() const { return port_; }
  [[nodiscard]] std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  /// Lets all stalled answers go, and those to come.
  void release();
  /// Sends these bytes on every connection that is open, asked for or not.
  void send_to_all(std::string_view bytes);
  /// Ends every connection that is open, after what was sent.
  void close_all();
  /// "request EVENT" when one has come, "gone EVENT" when the client of one that hangs has closed
  /// its connection, in the order in which the server's machine saw them.
  [[nodiscard]] std::vector<std::string> events() const;

  /// Charges that were made.
  [[nodiscard]] std::int64_t charges() const;
  [[nodiscard]] std::map<std::string, int> charges_by_key() const;
  [[nodiscard]] std::vector<ApiCall> calls() const;
  [[nodiscard]] std::size_t call_count() const;
  /// The most that were in hand at one time.
  [[nodiscard]] int most_at_once() const { return most_at_once_; }
  [[nodiscard]] int in_hand() const { return in_hand_; }
  [[nodiscard]] std::size_t connections() const { return connections_made_; }

 private:
  void accept_all();
  void serve(int socket);
  bool answer(int socket, ApiCall call);
  void answer_early(int socket, const std::string& body);

  const bool dedupes_;
  const Script script_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<bool> ending_ = false;
  std::atomic<int> in_hand_ = 0;
  std::atomic<int> most_at_once_ = 0;
  std::atomic<std::size_t> connections_made_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable released_;
  bool is_released_ = false;            // guarded by mutex_
  std::map<std::string, int> charges_;  // guarded by mutex_; by key
  std::map<std::string, int> seen_;     // guarded by mutex_; by key
  std::vector<ApiCall> calls_;          // guarded by mutex_
  std::vector<std::string> events_;     // guarded by mutex_
  std::list<int> sockets_;              // guarded by mutex_
  std::vector<std::thread> threads_;    // guarded by mutex_
  std::thread acceptor_;
};

}  // namespace pawl::test
