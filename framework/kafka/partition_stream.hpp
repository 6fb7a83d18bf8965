#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "kafka/client.hpp"
#include "kafka/fetch_buffer.hpp"
#include "kafka/record.hpp"
#include "pawl/topic_partition.hpp"

namespace pawl::kafka {

class Intake;

/// The records of one assigned partition that were fetched and not taken yet. Made and closed on
/// the group thread, filled by the Intake, read by one worker.
class PartitionStream : public std::enable_shared_from_this<PartitionStream> {
 public:
  /// `on_readable` is called from the intake's thread whenever the stream turns from empty to
  /// non-empty; it must be quick and must not call back into this class.
  PartitionStream(Intake& intake, TopicPartition partition, std::function<void()> on_readable);
  ~PartitionStream();
  PartitionStream(const PartitionStream&) = delete;
  PartitionStream& operator=(const PartitionStream&) = delete;

  [[nodiscard]] const TopicPartition& partition() const { return partition_; }

  /// Messages of the partition run ahead of its stored offset (kafka/fetch_buffer.hpp). Called
  /// before it is opened.
  void run_ahead() { share_.run_ahead(); }

  /// Takes up to `most` records that are there already; never waits. Nothing once it is closed.
  /// The records must go before the stream does.
  std::vector<Record> take(std::size_t most);
  /// Its next record is not fetched, because kafka.buffer has no room for it.
  [[nodiscard]] bool waits_for_room();

 private:
  friend class Intake;

  enum class Push {
    kTaken,   ///< or of no use to anybody
    kWait,    ///< there is no room; the record is as it was
    kStop,    ///< Kafka must stop delivering: the record comes again, after a resume
    kUnsure,  ///< what comes is not what was asked for: Kafka must be asked again
  };

  // The intake's, which holds its routing mutex meanwhile:
  /// From now on records are awaited from `offset` on; what was there is dropped.
  void open(std::int64_t offset);
  /// Records are dropped until it is opened again.
  void shut();
  /// shut() for good.
  void close();
  Push push(Record& record);
  /// The place to go on from, if it has stopped for want of room and may go on now. With an epoch
  /// where the log may have been cut and have grown again meanwhile.
  std::optional<LogPosition> continuation();
  /// It goes on there.
  void resumed();

  Push push_message(Record& record);
  [[nodiscard]] bool is_next(const Record& record) const;
  void throttle(std::size_t refused);
  void note_dry();
  bool may_go_on();
  bool is_unexpected(bool is_what_was_awaited);

  Intake& intake_;
  TopicPartition partition_;
  std::function<void()> on_readable_;
  BufferShare share_;
  std::mutex mutex_;
  // Guarded by mutex_:
  std::deque<Record> inbox_;
  bool closed_ = false;
  bool open_ = false;
  bool throttled_ = false;
  bool resume_asked_ = false;
  bool ran_dry_ = false;
  std::size_t refused_ = 0;  ///< bytes of the record for which there was no room
  FetchWindow window_;
  std::chrono::steady_clock::time_point throttled_at_{};
  LogPosition next_;  ///< behind what was accepted last
  /// The first message after a resume shows whether it is the log that was read before.
  enum class Doubt { kNone, kFirst, kAskedAgain } doubt_ = Doubt::kNone;
};

}  // namespace pawl::kafka
