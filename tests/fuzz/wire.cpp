// The reader of PostgreSQL's protocol in the proxy for tests: a client's stream, whose packets end
// where the first byte has it.
#include "testing/postgres_wire.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "fuzz.hpp"
#include "handlers/sql_lexer.hpp"

using namespace pawl::testing;
using pawl::fuzzing::require;

namespace {

/// The same by the lexer of handlers' statements.
bool commits_by_lexer(std::string_view sql) {
  using Kind = pawl::handlers::SqlTokenKind;
  bool first = true;
  for (std::size_t at = 0; at < sql.size();) {
    const auto token = pawl::handlers::next_sql_token(sql, at);
    const auto word = pawl::handlers::sql_keyword(sql.substr(at, token.end - at));
    at = token.end;
    if (token.kind == Kind::kWhiteSpace || token.kind == Kind::kComment)
      continue;
    if (first && token.kind == Kind::kWord && (word == "COMMIT" || word == "END"))
      return true;
    first = token.kind == Kind::kSemicolon;
  }
  return false;
}

struct Read {
  std::vector<std::string> messages;
  bool failed = false;
};

/// The stream in packets of `size` bytes.
Read read(std::string_view bytes, std::size_t size, bool typed) {
  Read result;
  WireStream stream(typed);
  StatementTracker statements;
  try {
    while (!bytes.empty()) {
      const auto packet = bytes.substr(0, size);
      bytes.remove_prefix(packet.size());
      stream.append(packet);
      while (const auto message = stream.next()) {
        require(message->raw.size() == message->body.size() + (typed ? 5 : 4),
                "a message is its head and its body");
        result.messages.emplace_back(message->raw);
        if (!typed) {
          (void)opening_code(*message);
          stream.expect_types();
          typed = true;
        } else if (const auto statement = statements.read(*message)) {
          require(statement->commit == commits(statement->sql), "a statement is known by its text");
        }
      }
    }
  } catch (const std::runtime_error&) {
    result.failed = true;
  }
  return result;
}

}  // namespace

void fuzz(std::string_view input) {
  require(commits(input) == commits_by_lexer(input), "COMMIT is seen where PostgreSQL sees it",
          input);
  if (input.empty())
    return;
  const auto size = static_cast<unsigned char>(input.front()) % 16 + 1U;
  input.remove_prefix(1);
  for (const bool typed : {false, true}) {
    const auto whole = read(input, std::max<std::size_t>(1, input.size()), typed);
    const auto cut = read(input, size, typed);
    require(whole.messages == cut.messages && whole.failed == cut.failed,
            "a stream is cut into the same messages wherever its packets end");
    std::string joined;
    for (const auto& message : whole.messages)
      joined += message;
    require(input.starts_with(joined), "messages are the stream");
  }
}
