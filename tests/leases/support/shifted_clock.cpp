// Preloaded into a process: its wall clock is off by PAWL_TEST_CLOCK_SHIFT seconds. Monotonic
// clocks are what they are.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>

namespace {

time_t shift() {
  static const time_t seconds = [] {
    const char* text = std::getenv("PAWL_TEST_CLOCK_SHIFT");
    return text == nullptr ? time_t{0} : static_cast<time_t>(std::atoll(text));
  }();
  return seconds;
}

timespec real_time() {
  timespec now{};
  ::syscall(SYS_clock_gettime, CLOCK_REALTIME, &now);
  return now;
}

/// Says by how much the program's clock is off, as the program reads it.
const struct Teller {
  Teller() {
    const auto off = std::chrono::duration_cast<std::chrono::seconds>(
                         std::chrono::system_clock::now().time_since_epoch())
                         .count() -
                     real_time().tv_sec;
    std::printf("CLOCK %s\n", off >= 3590 ? "ahead" : off <= -3590 ? "behind" : "right");
    std::fflush(stdout);
  }
} teller;

}  // namespace

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = ::syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
    time->tv_sec += shift();
  return static_cast<int>(result);
}

extern "C" int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  const auto now = real_time();
  time->tv_sec = now.tv_sec + shift();
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}

extern "C" time_t time(time_t* out) noexcept {
  const auto now = real_time().tv_sec + shift();
  if (out != nullptr)
    *out = now;
  return now;
}

// Whoever waits until a time of the wall clock says so by the clock that is off.
extern "C" int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                                      const timespec* until) {
  using Function = int (*)(pthread_cond_t*, pthread_mutex_t*, const timespec*);
  static const auto next = [] {
    // The one of before that version takes other conditions.
    void* found = ::dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    return reinterpret_cast<Function>(
        found != nullptr ? found : ::dlsym(RTLD_NEXT, "pthread_cond_timedwait"));
  }();
  timespec right = *until;
  // A monotonic clock has not come so far.
  constexpr time_t kWallClock = 1'000'000'000;
  if (right.tv_sec > kWallClock)
    right.tv_sec -= shift();
  return next(condition, mutex, &right);
}
