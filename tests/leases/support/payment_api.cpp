#include "payment_api.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

namespace pawl::test {
namespace {

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// Takes one request off `received`, reading on as needed. Nullopt: the other side is gone.
std::optional<ApiCall> read_request(int socket, std::string& received) {
  const auto read_more = [&] {
    char buffer[16384];
    const auto got = ::recv(socket, buffer, sizeof buffer, 0);
    if (got <= 0)
      return false;
    received.append(buffer, static_cast<std::size_t>(got));
    return true;
  };
  std::size_t head_end = 0;
  while ((head_end = received.find("\r\n\r\n")) == std::string::npos) {
    if (!read_more())
      return std::nullopt;
  }
  ApiCall call;
  const auto head = received.substr(0, head_end + 2);
  auto line_end = head.find("\r\n");
  const auto first = head.substr(0, line_end);
  const auto space = first.find(' ');
  call.method = first.substr(0, space);
  call.target = first.substr(space + 1, first.rfind(' ') - space - 1);
  while (line_end + 2 < head.size()) {
    const auto begin = line_end + 2;
    line_end = head.find("\r\n", begin);
    const auto line = head.substr(begin, line_end - begin);
    const auto colon = line.find(':');
    auto value = line.substr(colon + 1);
    value.erase(0, value.find_first_not_of(' '));
    call.headers[lower(line.substr(0, colon))] = value;
  }
  received.erase(0, head_end + 4);
  const auto length = call.headers.find("content-length");
  const std::size_t wanted = length == call.headers.end() ? 0 : std::stoul(length->second);
  while (received.size() < wanted) {
    if (!read_more())
      return std::nullopt;
  }
  call.body = received.substr(0, wanted);
  received.erase(0, wanted);
  return call;
}

bool send_all(int socket, std::string_view text) {
  while (!text.empty()) {
    const auto sent = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

/// Until the client has closed its side; what comes before that is dropped.
void wait_for_end(int socket) {
  char buffer[4096];
  while (::recv(socket, buffer, sizeof buffer, 0) > 0) {
  }
}

/// The same without reading.
void wait_for_hang_up(int socket) {
  pollfd closed{socket, POLLRDHUP, 0};
  (void)::poll(&closed, 1, 60'000);
}

std::string response(int status, const std::string& headers, const std::string& body) {
  return "HTTP/1.1 " + std::to_string(status) + " Answer\r\nContent-Type: application/json\r\n" +
         headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

}  // namespace

PaymentApi::PaymentApi(bool dedupes, Script script, std::uint16_t port)
    : dedupes_(dedupes), script_(std::move(script)) {
  listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  const int reuse = 1;
  (void)::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  socklen_t size = sizeof address;
  if (::bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener_, 1024) != 0 ||
      ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("the payment API cannot listen");
  port_ = ntohs(address.sin_port);
  acceptor_ = std::thread([this] { accept_all(); });
}

PaymentApi::~PaymentApi() {
  ending_ = true;
  release();
  ::shutdown(listener_, SHUT_RDWR);
  acceptor_.join();
  {
    const std::scoped_lock lock(mutex_);
    for (const auto socket : sockets_)
      ::shutdown(socket, SHUT_RDWR);
  }
  for (auto& thread : threads_)
    thread.join();
  ::close(listener_);
}

void PaymentApi::release() {
  const std::scoped_lock lock(mutex_);
  is_released_ = true;
  released_.notify_all();
}

void PaymentApi::accept_all() {
  while (!ending_) {
    const int socket = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0)
      continue;
    const int on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    const std::scoped_lock lock(mutex_);
    ++connections_made_;
    sockets_.push_back(socket);
    threads_.emplace_back([this, socket] { serve(socket); });
  }
}

void PaymentApi::serve(int socket) {
  std::string received;
  while (auto call = read_request(socket, received)) {
    const int now = ++in_hand_;
    int most = most_at_once_;
    while (now > most && !most_at_once_.compare_exchange_weak(most, now)) {
    }
    const bool goes_on = answer(socket, *std::move(call));
    --in_hand_;
    if (!goes_on)
      break;
  }
  const std::scoped_lock lock(mutex_);
  sockets_.remove(socket);
  ::close(socket);
}

bool PaymentApi::answer(int socket, ApiCall call) {
  const auto key = call.key();
  if (call.method == "GET") {
    const auto asked = call.target.substr(call.target.rfind('/') + 1);
    int count = 0;
    {
      const std::scoped_lock lock(mutex_);
      const auto found = charges_.find(asked);
      count = found == charges_.end() ? 0 : found->second;
    }
    return send_all(socket, count == 0 ? response(404, "", "{}")
                                       : response(200, "", "{\"charge\":\"" + asked + "\"}"));
  }
  {
    const std::scoped_lock lock(mutex_);
    call.number = ++seen_[key];
    calls_.push_back(call);
    events_.push_back("request " + call.name());
  }
  const auto what = script_(call);
  if (what.charge) {
    const std::scoped_lock lock(mutex_);
    auto& count = charges_[key];
    if (!dedupes_ || count == 0)
      ++count;
  }
  if (what.stall || what.delay.count() > 0) {
    std::unique_lock lock(mutex_);
    const auto released = [this] { return is_released_; };
    if (what.stall) {
      released_.wait(lock, released);
    } else {
      released_.wait_for(lock, what.delay, [this] { return ending_.load(); });
    }
  }
  if (what.hang) {
    wait_for_end(socket);
    const std::scoped_lock lock(mutex_);
    events_.push_back("gone " + call.name());
    return false;
  }
  if (what.cut)
    return false;
  if (!what.raw.empty())
    return send_all(socket, what.raw);
  if (!what.early_next.empty()) {
    // So that the next request does not fit into what the kernel takes for it.
    const int size = 4096;
    ::setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
    if (send_all(socket, response(200, "", "{\"charge\":\"" + key + "\"}")))
      answer_early(socket, what.early_next);
    return false;
  }
  return send_all(socket, response(what.status, what.headers,
                                   what.body.empty() ? "{\"charge\":\"" + key + "\"}" : what.body));
}

void PaymentApi::answer_early(int socket, const std::string& body) {
  char first = 0;
  if (::recv(socket, &first, 1, MSG_PEEK) != 1)
    return;
  {
    const std::scoped_lock lock(mutex_);
    events_.push_back("early");
  }
  (void)send_all(socket, response(200, "", body));
  wait_for_hang_up(socket);
}

void PaymentApi::send_to_all(std::string_view bytes) {
  const std::scoped_lock lock(mutex_);
  for (const auto socket : sockets_)
    (void)send_all(socket, bytes);
}

void PaymentApi::close_all() {
  const std::scoped_lock lock(mutex_);
  for (const auto socket : sockets_)
    ::shutdown(socket, SHUT_RDWR);
}

std::vector<std::string> PaymentApi::events() const {
  const std::scoped_lock lock(mutex_);
  return events_;
}

std::int64_t PaymentApi::charges() const {
  const std::scoped_lock lock(mutex_);
  std::int64_t sum = 0;
  for (const auto& [key, count] : charges_)
    sum += count;
  return sum;
}

std::map<std::string, int> PaymentApi::charges_by_key() const {
  const std::scoped_lock lock(mutex_);
  return charges_;
}

std::vector<ApiCall> PaymentApi::calls() const {
  const std::scoped_lock lock(mutex_);
  return calls_;
}

std::size_t PaymentApi::call_count() const {
  const std::scoped_lock lock(mutex_);
  return calls_.size();
}

}  // namespace pawl::test
