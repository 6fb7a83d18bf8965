#include "cli/stop_signals.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <system_error>

namespace pawl::cli {
namespace {

sigset_t signals_of(StopSignals::Reload reload) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  if (reload == StopSignals::Reload::kYes)
    sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

void StopSignals::block(Reload reload) {
  const auto set = signals_of(reload);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

StopSignals::StopSignals(std::function<void(int)> stop, std::function<bool()> reload)
    : stop_(std::move(stop)), reload_(std::move(reload)) {
  const auto which = reload_ ? Reload::kYes : Reload::kNo;
  block(which);
  const auto set = signals_of(which);
  signals_ = ::signalfd(-1, &set, SFD_CLOEXEC);
  end_ = ::eventfd(0, EFD_CLOEXEC);
  if (signals_ < 0 || end_ < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot watch for signals");
  }
  thread_ = std::thread([this] { serve(); });
}

StopSignals::~StopSignals() {
  const std::uint64_t one = 1;
  static_cast<void>(::write(end_, &one, sizeof one) == sizeof one);
  thread_.join();
  ::close(signals_);
  ::close(end_);
}

void StopSignals::serve() {
  bool stopping = false;
  bool reloading = false;
  std::array<pollfd, 2> watched{{{signals_, POLLIN, 0}, {end_, POLLIN, 0}}};
  while (true) {
    if (::poll(watched.data(), watched.size(), -1) < 0)
      continue;
    if ((watched[1].revents & POLLIN) != 0)
      return;
    signalfd_siginfo info{};
    if (::read(signals_, &info, sizeof info) != sizeof info)
      continue;
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGHUP) {
      reloading = reloading || stopping || reload_();
      continue;
    }
    if (stopping)
      ::_exit(128 + signal);
    stopping = true;
    stop_(signal);
  }
}

}  // namespace pawl::cli
