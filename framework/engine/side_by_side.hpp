#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "engine/consequences.hpp"
#include "engine/context.hpp"
#include "engine/hands.hpp"
#include "engine/mailbox.hpp"
#include "engine/partition.hpp"
#include "engine/probation.hpp"
#include "engine/runner.hpp"
#include "engine/worker_session.hpp"

namespace pawl::engine {

/// Runs what does not run on the worker's thread: all messages of partitions whose handlers have
/// `concurrency`, and calls of the others, which complete in the log's order: one call after the
/// other, and nothing else of the partition meanwhile. Gives messages to the hands, takes what
/// became of them, and moves the stored offset over those that are finished. A suspect goes to them
/// with its mark and its leave to run alone: it waits for code that runs, and for no message of the
/// window that only waits. What is known of the first message (an attempt to be counted, a halt)
/// makes it go alone, as in any partition, once all before it is stored; so does a suspect whose
/// call is the application's. One worker's.
class SideBySide {
 public:
  /// Finds a partition of the worker's by its name; null: it is not there any more.
  using Find = std::function<Partition*(const TopicPartition&)>;

  SideBySide(Context& context, WorkerSession& session, Consequences& consequences,
             Probation& probation, Runner& runner, Mailbox& mailbox, Find find);

  /// The turn of a partition that runs. False: there is nothing to do.
  bool turn(Partition& partition, const std::function<bool()>& called_away);

  /// It is to be let go of: begins nothing more. True: what was begun has come back, and is stored
  /// as far as the log's order allows.
  bool wind_up(Partition& partition);

 private:
  using Clock = std::chrono::steady_clock;

  /// Where the message that comes next belongs.
  enum class Place {
    kWindow,
    kAlone,   ///< by itself on this thread, once the window is empty
    kRunner,  ///< with those behind it on this thread, once the window is empty
  };

  bool fill(Partition& partition, const std::function<bool()>& called_away);
  [[nodiscard]] Place place_of(const Partition& partition, const Inbox::Item& item);
  bool run_front_alone(Partition& partition, const std::function<bool()>& called_away);
  [[nodiscard]] Window::Entry make_entry(const Partition& partition, Inbox::Item item);
  bool begin(Partition& partition, std::int64_t below);
  [[nodiscard]] Errand make_errand(Partition& partition, Window::Entry entry);
  bool mark_suspect(Partition& partition, Errand& errand);
  void end_suspect(Partition* partition, const Errand& errand, const Landing& landing);
  static void make_room(Partition& partition);
  [[nodiscard]] bool is_due_to_pass(const Partition& partition) const;
  bool pass(Partition& partition);
  bool halt_as_wanted(Partition& partition);
  void landed(Partition& partition, const Errand& errand, const Landing& landing);

  Context& context_;
  WorkerSession& session_;
  Consequences& consequences_;
  Probation& probation_;
  Runner& runner_;
  Mailbox& mailbox_;
  const Find find_;
  message::JsonReader reader_;
};

}  // namespace pawl::engine
