#include "testing/proxy_connection.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <utility>

namespace pawl::testing {

namespace {

// Above it the other side's sender has to wait, as with a real network's buffers.
constexpr std::size_t kMostBuffered = 16U << 20U;

std::uint32_t first_u32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4 && i < bytes.size(); ++i) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

bool is_due(const OutgoingBytes& bytes, OutgoingBytes::Clock::time_point now) {
  const auto due = bytes.next_due();
  return due && *due <= now;
}

}  // namespace

ProxyConnection::ProxyConnection(std::uint64_t id, Descriptor client, Descriptor server,
                                 ProxySurroundings& surroundings)
    : id_{id},
      client_{std::move(client)},
      server_{std::move(server)},
      surroundings_{surroundings} {}

short ProxyConnection::client_interest(OutgoingBytes::Clock::time_point now) const {
  const bool read = !client_ended_ && to_server_.size() < kMostBuffered;
  return static_cast<short>((read ? POLLIN : 0) | (is_due(to_client_, now) ? POLLOUT : 0));
}

short ProxyConnection::server_interest(OutgoingBytes::Clock::time_point now) const {
  const bool read = !server_ended_ && to_client_.size() < kMostBuffered;
  return static_cast<short>((read ? POLLIN : 0) | (is_due(to_server_, now) ? POLLOUT : 0));
}

std::optional<OutgoingBytes::Clock::time_point> ProxyConnection::next_due() const {
  const auto first = to_client_.next_due();
  const auto second = to_server_.next_due();
  return first && second ? std::min(first, second) : (first ? first : second);
}

void ProxyConnection::read_client() {
  read(Side::kClient);
}
void ProxyConnection::read_server() {
  read(Side::kServer);
}

void ProxyConnection::read(Side side) {
  if (closed()) {
    return;
  }
  static thread_local std::array<char, 65536> buffer;
  const bool client = side == Side::kClient;
  const ssize_t got = recv((client ? client_ : server_).get(), buffer.data(), buffer.size(), 0);
  if (got < 0) {
    if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
      close();
    }
    return;
  }
  if (got == 0) {
    (client ? client_ended_ : server_ended_) = true;
  } else {
    (client ? from_client_ : from_server_).append({buffer.data(), static_cast<std::size_t>(got)});
    process(side);
  }
  write();
}

void ProxyConnection::process(Side side) {
  try {
    side == Side::kClient ? process_client() : process_server();
  } catch (const std::exception&) {
    close();  // not PostgreSQL's protocol: nothing that could be forwarded
  }
}

void ProxyConnection::process_client() {
  while (!closed() && !stalled_) {
    const auto message = from_client_.next();
    if (!message) {
      return;
    }
    if (!opened_) {
      open_session(*message);
      continue;
    }
    if (const auto statement = statements_.read(*message)) {
      const ProxyEvent event{id_, backend_pid_, statement->sql, statement->commit};
      commit_held_ = statement->commit;
      if (!obey(surroundings_.judge(Moment::kBefore, event), Side::kClient, *message)) {
        return;
      }
      count_commit();
    }
    forward(Side::kClient, message->raw);
  }
}

void ProxyConnection::open_session(const WireMessage& message) {
  const auto code = opening_code(message);
  if (code == static_cast<std::uint32_t>(Opening::kTls) ||
      code == static_cast<std::uint32_t>(Opening::kGss)) {
    to_client_.push("N", OutgoingBytes::Clock::now());
    return;
  }
  forward(Side::kClient, message.raw);
  opened_ = true;  // a cancel request sends nothing more
  from_client_.expect_types();
}

void ProxyConnection::process_server() {
  while (!closed() && !stalled_) {
    const auto message = from_server_.next();
    if (!message) {
      return;
    }
    if (message->type == 'K') {
      backend_pid_ = first_u32(message->body);
    } else if (message->type == 'C') {
      ProxyEvent event{id_, backend_pid_,
                       std::string{message->body.substr(0, message->body.find('\0'))}, false};
      event.commit = event.text == "COMMIT";
      surroundings_.counts.commits_completed += event.commit ? 1 : 0;
      if (!obey(surroundings_.judge(Moment::kAfter, event), Side::kServer, *message)) {
        return;
      }
    }
    forward(Side::kServer, message->raw);
  }
}

/// False when the message must not be forwarded now.
bool ProxyConnection::obey(Verdict verdict, Side from, const WireMessage& message) {
  if (verdict == Verdict::kForward) {
    return true;
  }
  if (verdict == Verdict::kCut) {
    write();  // what came ahead of the message
    surroundings_.counts.cut += closed() ? 0 : 1;
    close();
    return false;
  }
  // Held back behind what came ahead of it: nothing is written while stalled.
  write();
  forward(from, message.raw);
  stalled_ = true;
  return false;
}

void ProxyConnection::count_commit() {
  surroundings_.counts.commits_sent += std::exchange(commit_held_, false) ? 1 : 0;
}

void ProxyConnection::forward(Side from, std::string_view bytes) {
  const auto now = OutgoingBytes::Clock::now();
  if (from == Side::kClient) {
    to_server_.push(bytes, now + surroundings_.to_server_latency);
  } else {
    to_client_.push(bytes, now + surroundings_.to_client_latency);
  }
}

void ProxyConnection::write() {
  if (closed() || stalled_) {
    return;
  }
  write_side(to_server_, server_.get(), surroundings_.counts.bytes_to_server);
  if (!closed()) {
    write_side(to_client_, client_.get(), surroundings_.counts.bytes_to_client);
  }
  if ((client_ended_ && to_server_.empty()) || (server_ended_ && to_client_.empty())) {
    close();
  }
}

void ProxyConnection::write_side(OutgoingBytes& bytes, int socket, std::uint64_t& written) {
  if (bytes.write_due(socket, OutgoingBytes::Clock::now(), written) ==
      OutgoingBytes::Result::kPeerGone) {
    close();
  }
}

void ProxyConnection::resume() {
  if (closed() || !std::exchange(stalled_, false)) {
    return;
  }
  count_commit();
  process(Side::kClient);
  process(Side::kServer);
  write();
}

void ProxyConnection::close() {
  client_.close();
  server_.close();
}

}  // namespace pawl::testing
