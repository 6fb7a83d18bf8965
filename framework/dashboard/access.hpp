#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "ops/host_names.hpp"
#include "pawl/options.hpp"

namespace pawl::dashboard {

using Clock = std::chrono::steady_clock;

/// Somebody who may act, and see values.
struct Actor {
  std::string name;
  std::string form_key;   ///< what every form of theirs has to bring along
  bool by_token = false;  ///< and so may sign out
};

/// Of whom wrong tokens are counted.
struct Client {
  std::string name;    ///< an address, or what stands for a browser
  bool known = false;  ///< a browser that has signed in before: strangers cannot lock it out
};

/// What a request says of where it comes from.
struct Origin {
  std::string method;
  bool proxied = false;    ///< Access::is_proxy()
  std::string host;        ///< Host
  std::string origin;      ///< Origin, "" where there is none
  std::string fetch_site;  ///< Sec-Fetch-Site
  std::string forwarded_host;
};

/// Why the request is not answered: the page's text; nullopt: it may be. A page that is open in a
/// browser must not use the person's network to read here (a name that resolves to this machine),
/// nor send forms in their name.
[[nodiscard]] std::optional<std::string> refusal(const Origin& request,
                                                 const ops::HostNames& names);

/// A header that came more than once, of those that say who asks, and from where. `count`: how many
/// there are of a name.
[[nodiscard]] std::optional<std::string> repeated_header(
    const std::function<std::size_t(const std::string& name)>& count,
    const std::string& actor_header);

/// Compares without telling by the time how much is right.
[[nodiscard]] bool same_secret(const std::string& one, const std::string& other);

/// 64 hexadecimal digits that nobody can guess.
[[nodiscard]] std::string random_secret();

/// Who may act. Any thread.
class Access {
 public:
  explicit Access(const MonitoringOptions& options);

  /// Somebody may act.
  [[nodiscard]] bool by_token() const { return !options_.actions_token.empty(); }

  /// Whether the proxy sent it: from its address, with the token. The address alone does not tell:
  /// a browser on the proxy's machine has it too, with whatever page is open there.
  [[nodiscard]] bool is_proxy(const std::string& peer, const std::string& authorization) const;

  /// Who it is: by the header of a proxied request, else by the session's cookie.
  [[nodiscard]] std::optional<Actor> find(bool proxied, const std::string& actor_header,
                                          const std::string& session, Clock::time_point now);

  enum class SignIn { kDone, kWrong, kTooOften, kNameless };
  struct SignedIn {
    SignIn outcome = SignIn::kWrong;
    std::string session;  ///< of kDone: for the cookie
    std::string browser;  ///< of kDone: for the cookie by which client() knows it
  };
  SignedIn sign_in(const Client& client, const std::string& token, const std::string& name,
                   Clock::time_point now);
  /// Who wants to sign in. `browser`: its cookie. `forwarded_for`: X-Forwarded-For, of which the
  /// trusted proxy's own word is the last; others are not believed.
  [[nodiscard]] Client client(const std::string& peer, const std::string& forwarded_for,
                              const std::string& browser) const;
  void sign_out(const std::string& session);

  /// How long a session lasts, whatever is done in it.
  static constexpr std::chrono::hours kSessionTime{12};
  static constexpr std::size_t kMostSessions = 64;
  /// Wrong tokens within kTryTime, of one client and of all that are not known.
  static constexpr std::size_t kMostTries = 10;
  static constexpr std::size_t kMostTriesOfAll = 1000;
  static constexpr std::chrono::minutes kTryTime{1};

 private:
  /// What only this process can make of `text`.
  [[nodiscard]] std::string seal(const std::string& text) const;

  struct Session {
    Actor actor;
    Clock::time_point begun;
  };

  const MonitoringOptions options_;
  const std::string proxy_;   ///< its address
  const std::string secret_;  ///< of this process
  std::mutex mutex_;
  std::map<std::string, Session> sessions_;  // guarded by mutex_; by the cookie's digest
  std::deque<std::pair<Clock::time_point, std::string>> wrong_tries_;  // guarded by mutex_
};

/// A name that may stand in the history: one line, no longer than 80 bytes.
[[nodiscard]] std::string clean_name(const std::string& name);

/// The value of a cookie in the Cookie header.
[[nodiscard]] std::string cookie(const std::string& header, const std::string& name);

}  // namespace pawl::dashboard
