#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

namespace pawl::ops {

/// What is counted apart for each topic and partition, or for each name (with partition -1). Made
/// when it is first asked for, and never removed: there are as many as the cluster's partitions and
/// the configuration's handlers. Any thread; who asks for the same one again takes no lock.
template <typename Value>
class Series {
 public:
  using Place = std::pair<std::string, std::int32_t>;

  Series() = default;
  Series(const Series&) = delete;
  Series& operator=(const Series&) = delete;

  /// `make` returns a new one, as a std::unique_ptr.
  template <typename Make>
  Value& at(std::string_view name, std::int32_t partition, const Make& make) {
    struct Last {
      std::uint64_t of = 0;
      const Place* place = nullptr;
      Value* value = nullptr;
    };
    thread_local Last last;
    if (last.of == id_ && last.place->second == partition && last.place->first == name)
      return *last.value;
    const std::scoped_lock lock(mutex_);
    auto found = values_.find(std::pair(name, partition));
    if (found == values_.end())
      found = values_.emplace(Place(name, partition), make()).first;
    last = {id_, &found->first, found->second.get()};
    return *last.value;
  }

  /// In order of name and partition. What is made meanwhile waits.
  template <typename Visit>
  void each(const Visit& visit) const {
    const std::scoped_lock lock(mutex_);
    for (const auto& [place, value] : values_)
      visit(place.first, place.second, *value);
  }

 private:
  struct Less {
    using is_transparent = void;
    template <typename One, typename Other>
    bool operator()(const One& one, const Other& other) const {
      const auto order = std::string_view(one.first).compare(other.first);
      return order != 0 ? order < 0 : one.second < other.second;
    }
  };

  /// Of a kind of series, in this process; 0 is nobody's.
  static std::uint64_t next_id() {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  const std::uint64_t id_ = next_id();
  mutable std::mutex mutex_;
  std::map<Place, std::unique_ptr<Value>, Less> values_;  // guarded by mutex_
};

}  // namespace pawl::ops
