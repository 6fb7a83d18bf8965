#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <future>
#include <list>
#include <mutex>
#include <pawl/testing/postgres_proxy.hpp>
#include <pawl/testing/wait.hpp>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "testing/postgres_address.hpp"
#include "testing/proxy_connection.hpp"
#include "testing/proxy_pipe.hpp"

namespace pawl::testing {

namespace {

using Clock = OutgoingBytes::Clock;

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error{errno, std::generic_category(), what};
}

/// A socket bound to 127.0.0.1. SO_REUSEPORT: the proxy keeps one bound for its whole life, so that
/// nobody else takes the port while it refuses connections, and listens with another.
Descriptor bound_socket(std::uint16_t port) {
  Descriptor socket{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  if (!socket.open() || setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0 ||
      setsockopt(socket.get(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on) != 0 ||
      bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    throw_errno("the proxy cannot bind a port of 127.0.0.1");
  }
  return socket;
}

std::uint16_t port_of(const Descriptor& socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  if (getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    throw_errno("the proxy cannot read its port");
  }
  return ntohs(address.sin_port);
}

void tune(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fcntl(socket, F_SETFL, fcntl(socket, F_GETFL) | O_NONBLOCK);
}

/// Connects to the server; a closed descriptor when it does not answer. Meant for a server near by:
/// the proxy waits meanwhile.
Descriptor connect_to(const PostgresAddress& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* raw = nullptr;
  if (getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &raw) != 0) {
    return Descriptor{};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> found{raw, &freeaddrinfo};
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Descriptor socket{::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol)};
    if (socket.open() && connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) {
      tune(socket.get());
      return socket;
    }
  }
  return Descriptor{};
}

}  // namespace

struct PostgresProxy::Trigger::State {
  // Set before the trigger is handed to the proxy's thread, then only used by it.
  Moment moment = Moment::kBefore;
  Verdict verdict = Verdict::kCut;
  Condition condition;
  int remaining = 1;

  std::atomic<bool> armed = true;
  std::mutex mutex;
  std::condition_variable changed;
  bool fired = false;  // guarded by mutex
};

bool PostgresProxy::Trigger::fired() const {
  const std::lock_guard lock{state_->mutex};
  return state_->fired;
}

void PostgresProxy::Trigger::wait(std::chrono::milliseconds deadline) const {
  std::unique_lock lock{state_->mutex};
  if (!state_->changed.wait_for(lock, deadline, [this] { return state_->fired; })) {
    throw Timeout{
        fmt::format("waited {} ms for a trigger of the proxy. Does the client connect through the "
                    "proxy, and does it send the statement?",
                    deadline.count())};
  }
}

void PostgresProxy::Trigger::disarm() {
  state_->armed = false;
}

/// Everything but the queue of tasks belongs to the one thread that runs loop(): the public methods
/// hand it a task and wait for it.
class PostgresProxy::Impl {
 public:
  explicit Impl(PostgresAddress server)
      : server_{std::move(server)},
        reserved_{bound_socket(0)},
        port_{port_of(reserved_)},
        wake_{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    surroundings_.judge = [this](Moment moment, const ProxyEvent& event) {
      return judge(moment, event);
    };
    listen(true);
    thread_ = std::thread{[this] { loop(); }};
  }

  ~Impl() {
    run([this] { stopping_ = true; });
    thread_.join();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  std::uint16_t port() const { return port_; }

  /// Runs a task on the proxy's thread and returns when it is done.
  template <typename Task>
  void run(Task task) {
    std::packaged_task<void()> packaged{std::move(task)};
    auto done = packaged.get_future();
    {
      const std::lock_guard lock{mutex_};
      tasks_.push_back(std::move(packaged));
    }
    const std::uint64_t one = 1;
    static_cast<void>(::write(wake_.get(), &one, sizeof one));
    done.get();
  }

  // For tasks, on the proxy's thread.

  void add(std::shared_ptr<Trigger::State> trigger) { triggers_.push_back(std::move(trigger)); }

  void stall(std::optional<std::chrono::milliseconds> duration) {
    stalled_ = true;
    stall_end_ = duration ? std::optional{Clock::now() + *duration} : std::nullopt;
  }

  void resume() {
    stalled_ = false;
    stall_end_.reset();
    for (auto& connection : connections_) {
      connection.resume();
    }
  }

  void cut_all() {
    for (auto& connection : connections_) {
      surroundings_.counts.cut += connection.closed() ? 0 : 1;
      connection.close();
    }
  }

  void listen(bool on) {
    if (!on) {
      listener_.close();
    } else if (!listener_.open()) {
      listener_ = bound_socket(port_);
      if (::listen(listener_.get(), SOMAXCONN) != 0) {
        throw_errno("the proxy cannot listen");
      }
    }
  }

  void set_latency(std::chrono::microseconds to_server, std::chrono::microseconds to_client) {
    surroundings_.to_server_latency = to_server;
    surroundings_.to_client_latency = to_client;
  }

  Counts counts() {
    surroundings_.counts.open = static_cast<std::uint64_t>(
        std::count_if(connections_.begin(), connections_.end(),
                      [](const ProxyConnection& one) { return !one.closed(); }));
    return surroundings_.counts;
  }

 private:
  void loop() {
    while (!stopping_) {
      wait_for_events();
      run_tasks();
      if (stall_end_ && Clock::now() >= *stall_end_) {
        resume();
      }
      if (!stalled_) {
        serve_connections();
      }
      announce();
      drop_closed();
      accept_one();
    }
  }

  void wait_for_events() {
    const auto now = Clock::now();
    auto wake_at = stall_end_;
    polled_.clear();
    polled_.push_back({wake_.get(), POLLIN, 0});
    polled_.push_back({listener_.get(), POLLIN, 0});  // ignored by poll while it is -1
    for (const auto& connection : connections_) {
      const bool silent = stalled_ || connection.stalled();
      const short client = silent ? short{0} : connection.client_interest(now);
      const short server = silent ? short{0} : connection.server_interest(now);
      // Without interest not even an error may wake us: it would again and again.
      polled_.push_back({client != 0 ? connection.client() : -1, client, 0});
      polled_.push_back({server != 0 ? connection.server() : -1, server, 0});
      const auto due = silent ? std::nullopt : connection.next_due();
      if (due && *due > now && (!wake_at || *due < *wake_at)) {
        wake_at = due;
      }
    }
    timespec timeout{};
    if (wake_at) {
      const auto left = std::max(*wake_at - now, Clock::duration::zero());
      const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
      timeout.tv_sec = seconds.count();
      timeout.tv_nsec = std::chrono::nanoseconds{left - seconds}.count();
    }
    if (ppoll(polled_.data(), polled_.size(), wake_at ? &timeout : nullptr, nullptr) < 0) {
      for (auto& entry : polled_) {
        entry.revents = 0;  // interrupted
      }
    }
  }

  void run_tasks() {
    std::uint64_t ignored = 0;
    static_cast<void>(::read(wake_.get(), &ignored, sizeof ignored));
    std::vector<std::packaged_task<void()>> tasks;
    {
      const std::lock_guard lock{mutex_};
      tasks.swap(tasks_);
    }
    for (auto& task : tasks) {
      task();
    }
  }

  // The list is as it was at wait_for_events(): only drop_closed() and accept_one() change it.
  void serve_connections() {
    std::size_t at = 2;
    for (auto& connection : connections_) {
      if (!connection.closed() && !connection.stalled()) {
        if (polled_[at].revents != 0) {
          connection.read_client();
        }
        if (polled_[at + 1].revents != 0 && !connection.closed() && !connection.stalled()) {
          connection.read_server();
        }
        connection.write();
      }
      at += 2;
    }
  }

  void drop_closed() {
    connections_.remove_if([](const ProxyConnection& one) { return one.closed(); });
  }

  void accept_one() {
    if (!listener_.open()) {
      return;
    }
    Descriptor client{accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)};
    if (!client.open()) {
      return;
    }
    tune(client.get());
    ++surroundings_.counts.accepted;
    Descriptor server = connect_to(server_);
    if (server.open()) {
      connections_.emplace_back(surroundings_.counts.accepted, std::move(client), std::move(server),
                                surroundings_);
    }
  }

  Verdict judge(Moment moment, const ProxyEvent& event) {
    for (auto one = triggers_.begin(); one != triggers_.end();) {
      auto& trigger = **one;
      if (!trigger.armed) {
        one = triggers_.erase(one);
      } else if (trigger.moment == moment && trigger.condition(event) && --trigger.remaining <= 0) {
        const Verdict verdict = trigger.verdict;
        fired_.push_back(std::move(*one));
        triggers_.erase(one);
        return verdict;
      } else {
        ++one;
      }
    }
    return Verdict::kForward;
  }

  /// Tells who waits, once what was decided has been done.
  void announce() {
    for (const auto& trigger : fired_) {
      const std::lock_guard lock{trigger->mutex};
      trigger->fired = true;
      trigger->changed.notify_all();
    }
    fired_.clear();
  }

  const PostgresAddress server_;
  const Descriptor reserved_;
  const std::uint16_t port_;
  const Descriptor wake_;
  Descriptor listener_;
  ProxySurroundings surroundings_;
  std::list<ProxyConnection> connections_;
  std::vector<pollfd> polled_;
  std::list<std::shared_ptr<Trigger::State>> triggers_;
  std::vector<std::shared_ptr<Trigger::State>> fired_;
  bool stalled_ = false;
  std::optional<Clock::time_point> stall_end_;
  bool stopping_ = false;

  std::mutex mutex_;
  std::vector<std::packaged_task<void()>> tasks_;  // guarded by mutex_

  std::thread thread_;
};

PostgresProxy::PostgresProxy(const std::string& server_url)
    : server_url_{server_url}, impl_{std::make_unique<Impl>(address_of(server_url))} {}

PostgresProxy::~PostgresProxy() = default;

int PostgresProxy::port() const {
  return impl_->port();
}

std::string PostgresProxy::url() const {
  return url(server_url_);
}

std::string PostgresProxy::url(const std::string& server_url) const {
  return with_address(server_url, {"127.0.0.1", std::to_string(port())});
}

PostgresProxy::Trigger PostgresProxy::cut(Moment moment, Condition condition, int occurrence) {
  auto state = std::make_shared<Trigger::State>();
  state->moment = moment;
  state->verdict = Verdict::kCut;
  state->condition = std::move(condition);
  state->remaining = occurrence;
  impl_->run([&] { impl_->add(state); });
  return Trigger{state};
}

PostgresProxy::Trigger PostgresProxy::stall(Moment moment, Condition condition, int occurrence) {
  auto state = std::make_shared<Trigger::State>();
  state->moment = moment;
  state->verdict = Verdict::kStall;
  state->condition = std::move(condition);
  state->remaining = occurrence;
  impl_->run([&] { impl_->add(state); });
  return Trigger{state};
}

void PostgresProxy::stall_all() {
  impl_->run([this] { impl_->stall(std::nullopt); });
}

void PostgresProxy::stall_all_for(std::chrono::milliseconds duration) {
  impl_->run([this, duration] { impl_->stall(duration); });
}

void PostgresProxy::resume() {
  impl_->run([this] { impl_->resume(); });
}

void PostgresProxy::cut_all() {
  impl_->run([this] { impl_->cut_all(); });
}

void PostgresProxy::refuse_connections(bool refuse) {
  impl_->run([this, refuse] { impl_->listen(!refuse); });
}

void PostgresProxy::set_latency(std::chrono::microseconds to_server,
                                std::chrono::microseconds to_client) {
  impl_->run([=, this] { impl_->set_latency(to_server, to_client); });
}

PostgresProxy::Counts PostgresProxy::counts() const {
  Counts result;
  impl_->run([&] { result = impl_->counts(); });
  return result;
}

}  // namespace pawl::testing
