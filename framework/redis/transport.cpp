#include "redis/transport.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <hiredis/hiredis.h>
#include <hiredis/hiredis_ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "redis/error.hpp"
#include "redis/tls.hpp"

namespace pawl::redis {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct ContextDeleter {
  void operator()(redisContext* context) const noexcept { redisFree(context); }
};
struct ReplyDeleter {
  void operator()(redisReply* reply) const noexcept { freeReplyObject(reply); }
};
using Context = std::unique_ptr<redisContext, ContextDeleter>;

/// A write to a connection that the server has closed raises SIGPIPE, which would end a process
/// that does not ignore it. Neither hiredis nor OpenSSL prevents that.
class WithoutSigpipe {
 public:
  WithoutSigpipe() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    sigpending(&pending);
    was_pending_ = sigismember(&pending, SIGPIPE) == 1;
    pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~WithoutSigpipe() {
    const timespec at_once{};
    while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &at_once) == -1 && errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  WithoutSigpipe(const WithoutSigpipe&) = delete;
  WithoutSigpipe& operator=(const WithoutSigpipe&) = delete;

 private:
  sigset_t pipe_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

timeval to_timeval(milliseconds time) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(time);
  return {.tv_sec = seconds.count(), .tv_usec = std::chrono::microseconds(time - seconds).count()};
}

Reply convert(const redisReply& from) {
  Reply to;
  switch (from.type) {
    case REDIS_REPLY_INTEGER:
      to.type = Reply::Type::kInteger;
      to.integer = from.integer;
      break;
    case REDIS_REPLY_STRING:
    case REDIS_REPLY_STATUS:
      to.type = Reply::Type::kText;
      to.text.assign(from.str, from.len);
      break;
    case REDIS_REPLY_ERROR:
      to.type = Reply::Type::kError;
      to.text.assign(from.str, from.len);
      break;
    case REDIS_REPLY_ARRAY:
      to.type = Reply::Type::kArray;
      for (std::size_t i = 0; i < from.elements; ++i)
        to.items.push_back(convert(*from.element[i]));
      break;
    default:  // RESP2 has no others
      break;
  }
  return to;
}

bool append(redisContext* context, const Command& command) {
  std::vector<const char*> words;
  std::vector<std::size_t> sizes;
  for (const auto& word : command) {
    words.push_back(word.data());
    sizes.push_back(word.size());
  }
  return redisAppendCommandArgv(context, static_cast<int>(words.size()), words.data(),
                                sizes.data()) == REDIS_OK;
}

}  // namespace

struct Transport::Link {
  Context context;
};

std::string library_version() {
  return fmt::format("{}.{}.{}", HIREDIS_MAJOR, HIREDIS_MINOR, HIREDIS_PATCH);
}

Transport::Transport(const Address& address, const std::optional<TlsSettings>& tls,
                     milliseconds timeout, std::string server)
    : server_(std::move(server)), timeout_(timeout) {
  const auto limit = to_timeval(timeout);
  redisOptions options{};
  REDIS_OPTIONS_SET_TCP(&options, address.host.c_str(), address.port);
  options.connect_timeout = &limit;
  options.command_timeout = &limit;
  Context context(redisConnectWithOptions(&options));
  if (!context)
    throw Error(Error::Kind::kConnection,
                fmt::format("{}: out of memory while connecting", server_));
  if (context->err != 0) {
    throw Error(Error::Kind::kConnection,
                fmt::format("{}: cannot connect: {}", server_, context->errstr));
  }
  // Programs that this process starts must not hold it open.
  ::fcntl(context->fd, F_SETFD, FD_CLOEXEC);
  // A peer that vanished is found out also where nothing is asked for long.
  (void)redisEnableKeepAlive(context.get());
  if (tls) {
    const WithoutSigpipe quiet;
    auto session = make_tls(*tls, address.host, server_);
    if (redisInitiateSSL(context.get(), session.get()) != REDIS_OK) {
      const auto problem = certificate_problem(session.get());
      throw Error(Error::Kind::kConnection,
                  fmt::format("{}: TLS connection failed: {}", server_,
                              problem.empty() ? context->errstr : problem));
    }
    (void)session.release();  // the context's from here on
  }
  link_ = std::make_unique<Link>(std::move(context));
}

Transport::~Transport() = default;
Transport::Transport(Transport&&) noexcept = default;

bool Transport::alive() const {
  return link_ != nullptr;
}

bool Transport::stale() const {
  char byte = 0;
  return !link_ || ::recv(link_->context->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0;
}

void Transport::close() noexcept {
  link_.reset();
}

void Transport::give_up() {
  const auto& context = *link_->context;
  const bool malformed = context.err == REDIS_ERR_PROTOCOL;
  const std::string what = context.errstr;
  close();
  if (malformed)
    throw Error::malformed(server_, "a command", what);
  throw Error(Error::Kind::kConnection, fmt::format("{}: connection lost: {}", server_,
                                                    what.empty() ? "unknown reason" : what));
}

std::vector<Reply> Transport::exchange(const std::vector<Command>& commands) {
  if (!link_)
    throw Error(Error::Kind::kConnection, fmt::format("{}: the connection is closed", server_));
  auto* const context = link_->context.get();
  const WithoutSigpipe quiet;
  const auto deadline = steady_clock::now() + timeout_;
  const auto require = [&](bool done) {
    if (done)
      return;
    if (steady_clock::now() < deadline)
      give_up();
    close();
    throw Error(Error::Kind::kConnection,
                fmt::format("{}: no response within {} ms", server_, timeout_.count()));
  };
  for (const auto& command : commands)
    require(append(context, command));
  for (int written = 0; written == 0;)
    require(redisBufferWrite(context, &written) == REDIS_OK);
  std::vector<Reply> replies;
  while (replies.size() < commands.size()) {
    void* read = nullptr;
    require(redisGetReplyFromReader(context, &read) == REDIS_OK);
    const std::unique_ptr<redisReply, ReplyDeleter> reply(static_cast<redisReply*>(read));
    if (reply) {
      replies.push_back(convert(*reply));
      continue;
    }
    require(steady_clock::now() < deadline && redisBufferRead(context) == REDIS_OK);
  }
  return replies;
}

}  // namespace pawl::redis
