#include "kafka/bootstrap.hpp"

namespace pawl::kafka {
namespace {

constexpr std::chrono::seconds kPause{10};

}  // namespace

void Bootstrap::name_again(rd_kafka_t* client) {
  {
    const std::scoped_lock lock(mutex_);
    const auto now = std::chrono::steady_clock::now();
    if (now < next_)
      return;
    next_ = now + kPause;
  }
  rd_kafka_brokers_add(client, servers_.c_str());
}

}  // namespace pawl::kafka
