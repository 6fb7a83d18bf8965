#include "engine/topic_directory.hpp"

namespace pawl::engine {
namespace {
constexpr std::chrono::milliseconds kTimeout{3000};
}

TopicDirectory::TopicDirectory(const kafka::Client& client, std::vector<std::string> topics)
    : client_(client), topics_(std::move(topics)) {}

std::optional<kafka::TopicDescription> TopicDirectory::find(const std::string& topic,
                                                            std::chrono::milliseconds max_age) {
  bool fresh = false;
  {
    const std::scoped_lock lock(mutex_);
    fresh = described_at_ && Clock::now() - *described_at_ <= max_age;
  }
  if (!fresh)
    refresh();
  const std::scoped_lock lock(mutex_);
  const auto found = described_.find(topic);
  if (found == described_.end())
    return std::nullopt;
  return found->second;
}

void TopicDirectory::refresh() {
  auto described = client_.describe(topics_, kTimeout);
  const std::scoped_lock lock(mutex_);
  described_ = std::move(described);
  described_at_ = Clock::now();
}

}  // namespace pawl::engine
