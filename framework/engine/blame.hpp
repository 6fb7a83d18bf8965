#pragma once

#include "engine/context.hpp"
#include "engine/failure.hpp"
#include "engine/head.hpp"
#include "engine/verdict.hpp"
#include "engine/worker_session.hpp"

namespace pawl::engine {

/// What shows that a message is at fault although the SQLSTATE of its error speaks of the handler
/// or of the server.
enum class Proof {
  kNone,             ///< nothing does, or the SQLSTATE speaks of the message anyway
  kSoundStatements,  ///< a new session can run the handler's statements: only the values are left
  kHandlerWorks,     ///< other messages of its handler are applied meanwhile
  kServerWorks,      ///< anything else is committed meanwhile
};

/// Attempts in a row, between which others were committed, after which a message is at fault.
inline constexpr std::uint32_t kAttemptsWhileOthersPass = 5;

/// Pure: docs/failures.md, "Errors of only one message".
[[nodiscard]] Proof proof_against(const Attempt& attempt, const Head& head);

/// The attempt as decide() is to see it: the message's fault, where that is proven. May open a
/// session for that, and takes as long as that takes. Throws nothing.
[[nodiscard]] Attempt with_blame(Context& context, WorkerSession& session, const Attempt& attempt,
                                 Head& head);

}  // namespace pawl::engine
