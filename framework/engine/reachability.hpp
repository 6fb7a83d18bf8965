#pragma once

#include <mutex>
#include <string>

#include "engine/observers.hpp"

namespace pawl::engine {

/// Whether a server that the consumer needs answers anybody in this process. Those who use it say
/// how that went; a change is told to the observers. With several users, one success outweighs the
/// others' failures: who has no connection while others work is told as Step::kDisconnected. Any
/// thread.
class Reachability {
 public:
  /// The steps that tell the two changes.
  Reachability(const Observers& observers, Step lost, Step back)
      : observers_(observers), lost_(lost), back_(back) {}

  void answered();
  /// `why` is for people.
  void failed(const std::string& why);

 private:
  void tell(Step step, const std::string& detail) const;

  const Observers& observers_;
  const Step lost_;
  const Step back_;
  std::mutex mutex_;  ///< also keeps the order in which changes are told
  bool away_ = false;
};

}  // namespace pawl::engine
