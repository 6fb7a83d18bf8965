#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/consequences.hpp"
#include "engine/context.hpp"
#include "engine/crash_loop.hpp"
#include "engine/partition.hpp"
#include "engine/positions.hpp"
#include "engine/probation.hpp"
#include "engine/worker_session.hpp"

namespace pawl::engine {

/// Brings partitions to where they run: proof of membership, acquire in the register, seek in
/// Kafka. One worker's.
class Acquisition {
 public:
  using Partitions = std::map<TopicPartition, std::unique_ptr<Partition>>;

  Acquisition(Context& context, WorkerSession& session, Positions& positions,
              Consequences& consequences, Probation& probation, CrashLoop& crash_loop)
      : context_(context),
        session_(session),
        positions_(positions),
        consequences_(consequences),
        probation_(probation),
        crash_loop_(crash_loop) {}

  /// Asks Kafka what the partitions that are due need to know before they acquire: one question for
  /// all instead of one each, for a thousand come back at once after a reconnect.
  void prepare(const Partitions& partitions);

  /// The next step of a partition that does not run. False: it has none now.
  bool advance(Partition& partition);

 private:
  void prove(const std::vector<Partition*>& due);
  void ask_ranges(const std::vector<Partition*>& due);
  void postpone(Partition& partition, const std::string& why);
  void acquire(Partition& partition);
  void accept(Partition& partition, const Positioned& positioned);
  void refuse(Partition& partition, const Refused& refused);
  void position(Partition& partition);

  Context& context_;
  WorkerSession& session_;
  Positions& positions_;
  Consequences& consequences_;
  Probation& probation_;
  CrashLoop& crash_loop_;
};

}  // namespace pawl::engine
