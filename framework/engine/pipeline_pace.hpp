#pragma once

#include <chrono>
#include <cstddef>

namespace pawl::engine {

/// How many messages of a partition may go into its next pipeline. It begins small and doubles
/// while all goes well; what does not go well, or takes long, makes it shorter. One thread.
class PipelinePace {
 public:
  using Duration = std::chrono::steady_clock::duration;

  static constexpr std::size_t kFirst = 4;
  /// One alone is no pipeline.
  static constexpr std::size_t kShortest = 2;
  /// A revocation waits for a pipeline, and so does a message on probation in another partition.
  static constexpr std::chrono::milliseconds kLongest{100};

  /// `most`: messages, at least 1 (consumer.pipeline).
  explicit PipelinePace(std::size_t most);

  /// 1: the head message goes alone.
  [[nodiscard]] std::size_t size() const { return alone_ > 0 ? 1 : size_; }

  /// The first `stored` messages of a pipeline are behind; `complete`: so is the pipeline, and what
  /// stands behind them otherwise goes alone, to say what is the matter with it. Told after
  /// passed().
  void landed(std::size_t stored, bool complete, Duration took);
  /// So many messages are behind.
  void passed(std::size_t messages);

  /// Each of the next messages goes alone.
  void run_alone(std::size_t messages) { alone_ = messages; }
  void connection_broke() { size_ = smallest(); }

 private:
  [[nodiscard]] std::size_t smallest() const;

  std::size_t most_;
  std::size_t size_;
  std::size_t alone_ = 0;
  std::size_t alone_after_none_ = 0;  ///< so many go alone when a pipeline lands without any
};

}  // namespace pawl::engine
