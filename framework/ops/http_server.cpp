#include "ops/http_server.hpp"

#include <fmt/format.h>
#include <httplib.h>

#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "pawl/errors.hpp"

namespace pawl::ops {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kThreads = 4;
/// Connections that were taken and wait for one of them.
constexpr std::size_t kWaiting = 16;
constexpr seconds kPatience{2};
constexpr std::size_t kLargestBody = 1024;
constexpr seconds kFarewell{3};

/// A few threads, before which only so many connections wait: whoever accepts more waits, too. The
/// library's own pool takes any number.
class FewThreads final : public httplib::TaskQueue {
 public:
  // Of later releases it says whether the task was taken.
  using Taken = decltype(std::declval<httplib::TaskQueue&>().enqueue({}));

  FewThreads() {
    for (std::size_t i = 0; i < kThreads; ++i)
      threads_.emplace_back([this] { run(); });
  }

  Taken enqueue(std::function<void()> task) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.size() < kWaiting; });
    tasks_.push_back(std::move(task));
    changed_.notify_all();
    return Taken(true);
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

/// As its own default, without SO_REUSEPORT: by that a second process would take its share of the
/// requests in silence.
void set_socket_options(socket_t socket) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
}

}  // namespace

class HttpServer::Impl {
 public:
  Impl(const config::ListenAddress& address, Handler handler)
      : handler_(std::move(handler)), server_(std::make_unique<httplib::Server>()) {
    server_->new_task_queue = [] { return new FewThreads(); };
    server_->set_socket_options(set_socket_options);
    server_->set_keep_alive_max_count(1);
    server_->set_keep_alive_timeout(kPatience.count());
    server_->set_read_timeout(kPatience);
    server_->set_write_timeout(kPatience);
    server_->set_payload_max_length(kLargestBody);
    // Before anything of a body is read.
    server_->set_pre_routing_handler(
        [this](const httplib::Request& request, httplib::Response& response) {
          serve(request, response);
          return httplib::Server::HandlerResponse::Handled;
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
      throw FatalError(fmt::format(
          "monitoring.listen = \"{}\": this process cannot listen there ({}); choose another port "
          "or address, or end what listens there",
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

  void serve(const httplib::Request& request, httplib::Response& response) const {
    const auto answer = handler_(request.method, request.path);
    response.status = answer.status;
    if (answer.status == 405)
      response.set_header("Allow", "GET, HEAD");
    response.set_content(answer.body, answer.type.c_str());
  }

  const Handler handler_;
  const std::unique_ptr<httplib::Server> server_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;  // guarded by mutex_
  std::thread thread_;
};

HttpServer::HttpServer(const config::ListenAddress& address, Handler handler)
    : impl_(std::make_unique<Impl>(address, std::move(handler))) {}

HttpServer::~HttpServer() = default;

bool HttpServer::finish() {
  return impl_->finish();
}

}  // namespace pawl::ops
