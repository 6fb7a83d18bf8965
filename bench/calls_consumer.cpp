// Leased handlers whose calls take their time and nothing else, for `scripts/bench calls` and
// `scripts/bench leases`: what is left is what a lease costs. Run as any consumer is.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <pawl/pawl.hpp>
#include <stdexcept>
#include <stop_token>
#include <string>

namespace {

void wait(std::chrono::milliseconds time, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any stopped;
  std::unique_lock lock(mutex);
  stopped.wait_for(lock, stop, time, [] { return false; });
  if (stop.stop_requested())
    throw std::runtime_error("the call was told to stop");
}

}  // namespace

int main(int argc, char** argv) {
  pawl::App app{"bench-calls"};
  for (const int ms : {0, 200}) {
    app.leased_handler("wait_" + std::to_string(ms),
                       {.call = [ms](pawl::Lease& lease, const pawl::Message&) -> pawl::Response {
                         if (ms > 0)
                           wait(std::chrono::milliseconds(ms), lease.stop_token());
                         return R"({"done":true})";
                       }});
  }
  return app.main(argc, argv);
}
