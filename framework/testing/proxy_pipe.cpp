#include "testing/proxy_pipe.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace pawl::testing {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    number_ = other.release();
  }
  return *this;
}

void Descriptor::close() {
  if (number_ >= 0) {
    ::close(number_);
    number_ = -1;
  }
}

int Descriptor::release() {
  return std::exchange(number_, -1);
}

void OutgoingBytes::push(std::string_view bytes, Clock::time_point due) {
  if (bytes.empty()) {
    return;
  }
  size_ += bytes.size();
  if (!parts_.empty() && parts_.back().due == due) {
    parts_.back().bytes.append(bytes);
  } else {
    // Never ahead of what came before it, also when the latency was lowered meanwhile.
    const auto ordered = parts_.empty() ? due : std::max(due, parts_.back().due);
    parts_.push_back({std::string{bytes}, ordered});
  }
}

std::optional<OutgoingBytes::Clock::time_point> OutgoingBytes::next_due() const {
  return parts_.empty() ? std::nullopt : std::optional{parts_.front().due};
}

OutgoingBytes::Result OutgoingBytes::write_due(int socket, Clock::time_point now,
                                               std::uint64_t& written) {
  while (!parts_.empty() && parts_.front().due <= now) {
    const auto& bytes = parts_.front().bytes;
    const ssize_t sent = send(socket, bytes.data() + offset_, bytes.size() - offset_, MSG_NOSIGNAL);
    if (sent < 0) {
      return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? Result::kGoesOn
                                                                       : Result::kPeerGone;
    }
    written += static_cast<std::uint64_t>(sent);
    size_ -= static_cast<std::size_t>(sent);
    offset_ += static_cast<std::size_t>(sent);
    if (offset_ == bytes.size()) {
      parts_.pop_front();
      offset_ = 0;
    }
  }
  return Result::kGoesOn;
}

}  // namespace pawl::testing
