#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/failure.hpp"
#include "engine/head.hpp"
#include "engine/subject.hpp"
#include "pawl/options.hpp"

namespace pawl::engine {

/// What a worker was doing with a partition when it failed.
enum class Undertaking {
  kMessage,         ///< one message, in a transaction of its own
  kPipeline,        ///< several, each in a transaction of its own, on their way together
  kBatch,           ///< several in one transaction
  kLostConnection,  ///< in hand again: the message in whose handler the connection broke
  kNote,            ///< noting something about the message: its attempt, its dead letter, its mark
  kEndOfLog,        ///< the step over the end of the log; no message is in hand
  kHalt,            ///< storing a halt
  kAcquire,         ///< taking the partition from the register
};

/// Whether statements of a handler's may have run in it.
[[nodiscard]] bool runs_handler(Undertaking what);

/// Something that was tried, and failed with nothing stored (or in doubt).
struct Attempt {
  Undertaking what = Undertaking::kMessage;
  Failure failure = {};
  std::string about = {};    ///< kHalt: the reason of the halt that cannot be stored
  std::int64_t offset = -1;  ///< of the first message in hand; of the log's end
  std::size_t messages = 1;  ///< in hand together
  /// The register has counted it as an attempt of the message's, or need not.
  bool counted = false;
  /// The server ended the connection with a word, again and again, and only this one.
  bool breaks_connections = false;
  Subject subject = {};  ///< of the first message; `handler_begun`: of any
};

/// What its handler's configuration says of it.
struct Policy {
  FailurePolicy on_failure = FailurePolicy::kHalt;
  std::uint32_t most_attempts = 1;
  /// So many in a row failed in its way that none is set aside any more.
  bool breaker_open = false;
};

/// What the worker does next.
struct Action {
  enum class What {
    kReconnect,       ///< the session is lost
    kGiveWay,         ///< the partition has another owner, or the register lost its row
    kAskAgain,        ///< where the partition stands, the register and Kafka
    kPrepareAnew,     ///< in a new session
    kRestoreSession,  ///< its settings are put back, and the message runs again
    kWaitForRoom,     ///< the server has none to spare
    kTryAgain,        ///< uncounted
    kCount,           ///< in the register, and decide once more
    kRetry,           ///< after as long as the counted attempts say
    kGoOn,            ///< run the message now
    kSetAside,        ///< as the policy says
    kHaltAtMessage,   ///< until an operator or a new owner tries it once more
    kHaltProgram,     ///< and try by itself from time to time: any message would fail
    kHaltFlood,       ///< as kHaltProgram, because the breaker is open
  };
  enum class Wait { kNone, kJitter, kAcquireBackoff, kRetryBackoff };
  enum class Say { kNothing, kFailed, kWarning };
  /// How many messages go together next.
  enum class Company {
    kAsBefore,
    kFewer,   ///< so many met others
    kHalved,  ///< until it shows whose fault it is
    kAlone,   ///< one of them may be what breaks connections; it is counted when it comes up again
  };

  What what{};
  Wait wait = Wait::kNone;
  Say say = Say::kNothing;
  Company company = Company::kAsBefore;

  friend bool operator==(const Action&, const Action&) = default;
};

/// A message whose handler breaks its connection, attempt after attempt, may bring the server
/// process down each time and everybody's sessions with it: not as often as others are tried.
inline constexpr std::uint32_t kMostBrokenConnections = 5;

/// What follows when something about a partition fails (docs/failures.md). Pure, and the only place
/// where that is decided. An attempt in doubt is no case of its own: its connection is lost, and
/// whether it was stored says the register when the partition is acquired anew.
[[nodiscard]] Action decide(const Attempt& attempt, const Head& head, const Policy& policy);

/// It failed, but the server had room for the statements of a message: disk, memory, connections.
[[nodiscard]] bool shows_room(const Attempt& attempt);

/// Whether somebody must be told that the effects may be stored all the same.
[[nodiscard]] bool leaves_doubt(const Attempt& attempt);

}  // namespace pawl::engine
