#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace pawl::testing {

/// One message of PostgreSQL's protocol (manual, "Message Formats").
struct WireMessage {
  char type = 0;          ///< 0 for the untyped messages that open a connection
  std::string_view body;  ///< behind type and length
  std::string_view raw;   ///< all of it, as it is forwarded
};

/// Cuts a byte stream into messages. Views are valid until the next call of either method.
class WireStream {
 public:
  /// A client's stream begins with messages without a type; expect_types() ends that.
  explicit WireStream(bool typed) : typed_{typed} {}

  void append(std::string_view bytes);
  /// The next complete message, if there is one. Throws std::runtime_error when the bytes cannot
  /// be PostgreSQL's protocol.
  std::optional<WireMessage> next();
  void expect_types() { typed_ = true; }
  bool empty() const { return position_ == buffer_.size(); }

 private:
  std::string buffer_;
  std::size_t position_ = 0;
  bool typed_;
};

/// The codes of the untyped messages.
enum class Opening : std::uint32_t {
  kCancel = 80877102,
  kTls = 80877103,
  kGss = 80877104,
};

/// Code of an untyped message; a protocol version when it is none of Opening.
std::uint32_t opening_code(const WireMessage& message);

/// Does the text hold a statement, outside of quotes and comments, that begins with COMMIT or END?
bool commits(std::string_view sql);

/// A statement that the server is about to run.
struct WireStatement {
  std::string sql;
  bool commit = false;
};

/// Follows what a client prepares and binds, to know what an Execute executes.
class StatementTracker {
 public:
  /// The statement that this message of the client makes the server run: of a Query or an Execute.
  std::optional<WireStatement> read(const WireMessage& message);

 private:
  std::map<std::string, WireStatement, std::less<>> prepared_;
  std::map<std::string, WireStatement, std::less<>> portals_;
};

}  // namespace pawl::testing
