#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::testing {

/// A file descriptor that is closed with this object.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_{number} {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : number_{other.release()} {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return number_; }
  bool open() const { return number_ >= 0; }
  void close();
  int release();

 private:
  int number_;
};

/// What is on its way to one socket: written in order, each part not before its time. Used by the
/// proxy's thread only.
class OutgoingBytes {
 public:
  using Clock = std::chrono::steady_clock;

  void push(std::string_view bytes, Clock::time_point due);
  bool empty() const { return parts_.empty(); }
  std::size_t size() const { return size_; }
  /// When the first part may be written; nothing when there is none.
  std::optional<Clock::time_point> next_due() const;

  enum class Result { kGoesOn, kPeerGone };
  /// Writes what is due, as far as the socket takes it. Adds what it wrote to `written`.
  Result write_due(int socket, Clock::time_point now, std::uint64_t& written);

 private:
  struct Part {
    std::string bytes;
    Clock::time_point due;
  };
  std::deque<Part> parts_;
  std::size_t offset_ = 0;  // of what is written of the first part
  std::size_t size_ = 0;
};

}  // namespace pawl::testing
