#include "ops/http_server.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "pawl/errors.hpp"

namespace pawl::ops {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

constexpr std::size_t kThreads = 12;
/// So many of them pages may have at once; the others are for what programs ask.
constexpr int kMostPages = 4;
/// Connections that were taken and wait for one of them.
constexpr std::size_t kWaiting = 16;
/// Within so long a request has to be there, and after that its answer taken.
constexpr seconds kRequestTime{4};
constexpr seconds kAnswerTime{10};
/// The request's line and all of its headers. The library bounds only how many there are (100), and
/// how long is each (8 KiB, as the path).
constexpr std::size_t kLargestHead = 32768;
/// A form with a reason. The library takes no larger one.
constexpr std::size_t kLargestBody = 8192;
/// Longer than a request may take to come.
constexpr seconds kFarewell{5};

/// A few threads, before which only so many connections wait: whoever accepts more waits, too. The
/// library's own pool takes any number.
class FewThreads final : public httplib::TaskQueue {
 public:
  FewThreads() {
    for (std::size_t i = 0; i < kThreads; ++i)
      threads_.emplace_back([this] { run(); });
  }

  bool enqueue(std::function<void()> task) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.size() < kWaiting; });
    tasks_.push_back(std::move(task));
    changed_.notify_all();
    return true;
  }

  void shutdown() override {
    {
      const std::scoped_lock lock(mutex_);
      ending_ = true;
      changed_.notify_all();
    }
    for (auto& thread : threads_)
      thread.join();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
      if (tasks_.empty())
        return;
      const auto task = std::move(tasks_.front());
      tasks_.pop_front();
      changed_.notify_all();
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;  // guarded by mutex_
  bool ending_ = false;                      // guarded by mutex_
  std::vector<std::thread> threads_;
};

constexpr std::string_view kEndOfLine = "\r\n";
constexpr std::string_view kEndOfHead = "\r\n\r\n";

/// The values as they came. The library percent-decodes them, by which a stranger writes what a
/// proxy before this server looks for and removes. `head` is one that the library has taken.
httplib::Headers raw_headers(std::string_view head) {
  constexpr std::string_view kSpace = " \t";
  httplib::Headers headers;
  const auto next_line = [&head] {
    const auto end = head.find(kEndOfLine);
    const auto line = head.substr(0, end);
    head.remove_prefix(end == std::string_view::npos ? head.size() : end + kEndOfLine.size());
    return line;
  };
  next_line();  // the request's
  for (auto line = next_line(); !line.empty(); line = next_line()) {
    const auto colon = std::min(line.find(':'), line.size() - 1);
    auto value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(kSpace), value.size()));
    value = value.substr(0, value.find_last_not_of(kSpace) + 1);
    const std::string name(line.substr(0, colon));
    // A list, to which each proxy adds a value, in the line that there is or in one of its own.
    const auto list = headers.find("X-Forwarded-For");
    if (list != headers.end() && headers.key_eq()(name, list->first))
      list->second.append(", ").append(value);
    else
      headers.emplace(name, value);
  }
  return headers;
}

/// As its own default, without SO_REUSEPORT: by that a second process would take its share of the
/// requests in silence.
void set_socket_options(socket_t socket) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

/// A connection that has so long for all of its request, and then for all of its answer. The
/// library's own has a time for each byte, and so any number of bytes hold a thread for ever.
class BoundedStream final : public httplib::Stream {
 public:
  explicit BoundedStream(socket_t socket) : socket_(socket) {}

  /// Nothing is read ahead.
  bool is_readable() const override { return false; }
  bool wait_readable() const override { return wait(POLLIN, read_until_); }
  bool wait_writable() const override { return wait(POLLOUT, write_until()); }

  ssize_t read(char* to, std::size_t size) override {
    if (!wait_readable())
      return -1;
    const auto got = ::recv(socket_, to, size, 0);
    if (got > 0 && !head_read_) {
      if (head_.size() + static_cast<std::size_t>(got) > kLargestHead)
        return -1;
      const auto from = std::max(head_.size(), kEndOfHead.size()) - kEndOfHead.size();
      head_.append(to, static_cast<std::size_t>(got));
      head_read_ = head_.find(kEndOfHead, from) != std::string::npos;
    }
    return got;
  }
  /// The request's line and headers, and the line that ends them.
  [[nodiscard]] const std::string& head() const { return head_; }
  ssize_t write(const char* from, std::size_t size) override {
    if (!wait_writable())
      return -1;
    return ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getpeername(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0)
      name(address, ip, port);
  }
  void get_local_ip_and_port(std::string& ip, int& port) const override {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    if (::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0)
      name(address, ip, port);
  }
  socket_t socket() const override { return socket_; }
  time_t duration() const override {
    return std::chrono::floor<milliseconds>(steady_clock::now() - begun_).count();
  }

 private:
  static void name(const sockaddr_storage& address, std::string& ip, int& port) {
    char text[INET6_ADDRSTRLEN] = "";
    if (address.ss_family == AF_INET) {
      const auto& four = reinterpret_cast<const sockaddr_in&>(address);
      ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text);
      port = ntohs(four.sin_port);
    } else if (address.ss_family == AF_INET6) {
      const auto& six = reinterpret_cast<const sockaddr_in6&>(address);
      ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text);
      port = ntohs(six.sin6_port);
    }
    ip = text;
    // One of version 4 at a socket for both.
    constexpr std::string_view kMapped = "::ffff:";
    if (ip.starts_with(kMapped) && ip.find('.') != std::string::npos)
      ip.erase(0, kMapped.size());
  }

  [[nodiscard]] steady_clock::time_point write_until() const {
    if (!write_until_)
      write_until_ = steady_clock::now() + kAnswerTime;
    return *write_until_;
  }

  [[nodiscard]] bool wait(short what, steady_clock::time_point until) const {
    while (true) {
      const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now()).count();
      pollfd poll{socket_, what, 0};
      const int found = ::poll(&poll, 1, static_cast<int>(std::max<std::int64_t>(0, left)));
      if (found >= 0 || errno != EINTR)
        return found > 0;
    }
  }

  const socket_t socket_;
  const steady_clock::time_point begun_ = steady_clock::now();
  const steady_clock::time_point read_until_ = begun_ + kRequestTime;
  mutable std::optional<steady_clock::time_point> write_until_;
  std::string head_;
  bool head_read_ = false;
};

/// Serves one request a connection, in bounded time.
class BoundedServer final : public httplib::Server {
 private:
  bool process_and_close_socket(socket_t socket) override {
    BoundedStream stream(socket);
    std::string remote;
    std::string local;
    int remote_port = 0;
    int local_port = 0;
    stream.get_remote_ip_and_port(remote, remote_port);
    stream.get_local_ip_and_port(local, local_port);
    bool closed = false;
    const bool served =
        process_request(stream, remote, remote_port, local, local_port, true, closed,
                        [&stream](httplib::Request& request) { set_up(request, stream); });
    ::shutdown(socket, SHUT_RDWR);
    ::close(socket);
    return served;
  }

  static void set_up(httplib::Request& request, const BoundedStream& stream) {
    request.headers = raw_headers(stream.head());
    // Nothing is compressed, whatever the library was built with: that costs this process far more
    // than the request its client.
    request.headers.erase("Accept-Encoding");
    // All is sent, which a server may do whatever is asked for (RFC 9110, section 14.2): the
    // library makes the answer of a small head as large as all of its ranges together.
    request.ranges.clear();
    // What is left of a body is not read, for no other request follows it.
    request.body_consumed_ = true;
  }
};

/// Takes one of the places for pages, if there is one.
class Place {
 public:
  explicit Place(std::atomic<int>& taken) : taken_(taken), got_(++taken <= kMostPages) {}
  ~Place() { --taken_; }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  [[nodiscard]] bool got() const { return got_; }

 private:
  std::atomic<int>& taken_;
  const bool got_;
};

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const config::ListenAddress& address, Handler handler, Pages pages, std::string option)
      : handler_(std::move(handler)),
        pages_(std::move(pages)),
        option_(std::move(option)),
        server_(std::make_unique<BoundedServer>()) {
    server_->new_task_queue = [] { return new FewThreads(); };
    server_->set_socket_options(set_socket_options);
    // Before anything of a body is read.
    server_->set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          return begin(request, response) ? httplib::Server::HandlerResponse::Handled
                                          : httplib::Server::HandlerResponse::Unhandled;
        });
    server_->Post(".*", [this](const httplib::Request& request, httplib::Response& response) {
      serve_page(request, response);
    });
    server_->set_exception_handler([](const httplib::Request&, httplib::Response& response,
                                      const std::exception_ptr&) { response.status = 500; });
    listen(address);
  }

  ~Impl() {
    server_->stop();
    thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  bool finish() {
    server_->stop();
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, kFarewell, [this] { return ended_; });
  }

 private:
  void listen(const config::ListenAddress& address) {
    errno = 0;
    if (!server_->bind_to_port(address.host, address.port)) {
      const bool is_six = address.host.find(':') != std::string::npos;
      throw FatalError(
          fmt::format("{} = \"{}\": this process cannot listen there ({}). Choose another port or "
                      "address, or stop the process that uses it",
                      option_,
                      is_six ? fmt::format("[{}]:{}", address.host, address.port)
                             : fmt::format("{}:{}", address.host, address.port),
                      errno == 0 ? "not an address of this machine" : std::strerror(errno)));
    }
    thread_ = std::thread([this] {
      server_->listen_after_bind();
      const std::scoped_lock lock(mutex_);
      ended_ = true;
      changed_.notify_all();
    });
    // stop() is nothing to a server that does not run yet.
    while (!server_->is_running() && !ended())
      std::this_thread::sleep_for(milliseconds(1));
  }

  bool ended() {
    const std::scoped_lock lock(mutex_);
    return ended_;
  }

  /// Whether nothing more is to be read of it.
  bool begin(const httplib::Request& request, httplib::Response& response) {
    // A few encoded bytes may be a gigabyte.
    if (request.has_header("Content-Encoding")) {
      put({415, "text/plain; charset=utf-8", "Content-Encoding is not supported\n"}, response);
      response.set_header("Accept-Encoding", "identity");
      return true;
    }
    // With two headers, this server might use another one than a proxy (RFC 9112, section 3.2).
    if (request.get_header_value_count("Host") > 1) {
      put({400, "text/plain; charset=utf-8", "the request has more than one Host header\n"},
          response);
      return true;
    }
    if (!pages_.serve || !pages_.serve(request.path)) {
      const auto answer = handler_(described(request));
      put(answer, response);
      if (answer.status == 405)
        response.set_header("Allow", "GET, HEAD");
      return true;
    }
    if (request.method == "GET" || request.method == "HEAD") {
      serve_page(request, response);
      return true;
    }
    if (request.method != "POST") {
      put({405, "text/plain; charset=utf-8", "only GET, HEAD, and POST are supported\n"}, response);
      response.set_header("Allow", "GET, HEAD, POST");
      return true;
    }
    // With a length, the size is checked before the body is read.
    if (request.has_header("Transfer-Encoding") || !request.has_header("Content-Length")) {
      put({411, "text/plain; charset=utf-8", "a form requires Content-Length\n"}, response);
      return true;
    }
    if (request.get_header_value_u64("Content-Length") > kLargestBody) {
      put({413, "text/plain; charset=utf-8", "the form is too large\n"}, response);
      return true;
    }
    return false;
  }

  /// Refers to `request`.
  static HttpRequest described(const httplib::Request& request) {
    HttpRequest result;
    result.method = request.method;
    result.path = request.path;
    if (const auto mark = request.target.find('?'); mark != std::string::npos)
      result.query = request.target.substr(mark + 1);
    result.body = request.body;
    result.peer = request.remote_addr;
    result.header = [&request](const std::string& name) { return request.get_header_value(name); };
    result.count = [&request](const std::string& name) {
      return request.get_header_value_count(name);
    };
    return result;
  }

  void serve_page(const httplib::Request& request, httplib::Response& response) {
    const Place place(pages_taken_);
    if (!place.got()) {
      put({503, "text/plain; charset=utf-8", "too many concurrent pages. Retry in a second\n"},
          response);
      response.set_header("Retry-After", "1");
      return;
    }
    put(pages_.answer(described(request)), response);
  }

  static void put(const HttpAnswer& answer, httplib::Response& response) {
    response.status = answer.status;
    for (const auto& [name, value] : answer.headers)
      response.set_header(name, value);
    response.set_content(answer.body, answer.type.c_str());
  }

  const Handler handler_;
  const Pages pages_;
  const std::string option_;
  std::atomic<int> pages_taken_{0};
  const std::unique_ptr<BoundedServer> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;  // guarded by mutex_
  std::thread thread_;
};

std::string http_library_version() {
  return CPPHTTPLIB_VERSION;
}

HttpServer::HttpServer(const config::ListenAddress& address, Handler handler, Pages pages,
                       std::string option)
    : impl_(std::make_unique<Impl>(address, std::move(handler), std::move(pages),
                                   std::move(option))) {}

HttpServer::~HttpServer() = default;

bool HttpServer::finish() {
  return impl_->finish();
}

}  // namespace pawl::ops
