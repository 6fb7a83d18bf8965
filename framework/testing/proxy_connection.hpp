#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <pawl/testing/postgres_proxy.hpp>
#include <string>

#include "testing/postgres_wire.hpp"
#include "testing/proxy_pipe.hpp"

namespace pawl::testing {

/// What a connection does when it meets an event.
enum class Verdict { kForward, kCut, kStall };

/// What connections share with their proxy.
struct ProxySurroundings {
  std::function<Verdict(Moment, const ProxyEvent&)> judge;
  std::chrono::microseconds to_server_latency{0};
  std::chrono::microseconds to_client_latency{0};
  PostgresProxy::Counts counts;
};

/// One client and its connection to the server: what was read and is to be written on both sides.
/// Owned by the proxy, used by its thread only.
class ProxyConnection {
 public:
  ProxyConnection(std::uint64_t id, Descriptor client, Descriptor server,
                  ProxySurroundings& surroundings);

  int client() const { return client_.get(); }
  int server() const { return server_.get(); }
  bool closed() const { return !client_.open(); }
  bool stalled() const { return stalled_; }

  /// Events for poll(2); 0: the socket is of no interest now.
  short client_interest(OutgoingBytes::Clock::time_point now) const;
  short server_interest(OutgoingBytes::Clock::time_point now) const;
  std::optional<OutgoingBytes::Clock::time_point> next_due() const;

  /// Reads what is there, forwards what may be forwarded, writes what is due.
  void read_client();
  void read_server();
  void write();

  /// Goes on after a stall by a verdict.
  void resume();
  /// Closes both sides.
  void close();

 private:
  enum class Side { kClient, kServer };

  void read(Side side);
  void process(Side side);
  void process_client();
  void process_server();
  void open_session(const WireMessage& message);
  void count_commit();
  void forward(Side from, std::string_view bytes);
  bool obey(Verdict verdict, Side from, const WireMessage& message);
  void write_side(OutgoingBytes& bytes, int socket, std::uint64_t& written);

  const std::uint64_t id_;
  Descriptor client_;
  Descriptor server_;
  ProxySurroundings& surroundings_;
  WireStream from_client_{false};
  WireStream from_server_{true};
  StatementTracker statements_;
  OutgoingBytes to_client_;
  OutgoingBytes to_server_;
  std::uint32_t backend_pid_ = 0;
  bool opened_ = false;  // the client's startup message has passed
  bool client_ended_ = false;
  bool server_ended_ = false;
  bool stalled_ = false;
  bool commit_held_ = false;  // a COMMIT that is judged and not yet on its way to the server
};

}  // namespace pawl::testing
