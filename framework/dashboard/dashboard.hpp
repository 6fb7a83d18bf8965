#pragma once

#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "dashboard/access.hpp"
#include "dashboard/actions.hpp"
#include "dashboard/connections.hpp"
#include "dashboard/data.hpp"
#include "dashboard/replays.hpp"
#include "dashboard/samples.hpp"
#include "ops/http_message.hpp"
#include "pawl/handler.hpp"
#include "pawl/options.hpp"

namespace pawl::dashboard {

/// What a path is, and what it asks of who comes.
enum class Route {
  kStyle,
  kScript,
  kPartitions,
  kPartition,
  kLetters,
  kLetter,
  kKeys,
  kOutbox,
  kLeases,
  kHistory,
  kSignIn,
  kPostSignIn,
  kPostSignOut,
  kPostPartition,
  kPostLetter,
  kUnknown,
  kWrongMethod,
};
[[nodiscard]] Route route(std::string_view method, std::string_view path);
/// Only somebody who may act, with the key of their forms.
[[nodiscard]] bool needs_actor(Route route);

/// The web page for people. Answers on the threads of the HTTP server; keeps a sampler of its own.
class Dashboard {
 public:
  /// Both outlive it.
  Dashboard(const Options& options, const Registry& registry);

  [[nodiscard]] ops::HttpAnswer answer(const ops::HttpRequest& request);
  /// Looks at rates and lags from now on, instead of from the first page on.
  void look() { sampler_.wanted(); }
  /// False: a replay goes on, or a look at the servers, and the destructor would wait for it.
  [[nodiscard]] bool finish();

 private:
  struct Asked {
    Route route;
    const ops::HttpRequest& request;
    Fields query;
    Fields form;
    Frame frame;
    std::string session;  ///< its cookie
    bool needs_force = false;
  };

  [[nodiscard]] ops::HttpAnswer routed(Asked& asked);
  [[nodiscard]] std::string page(const Asked& asked, postgres::Session& session);
  /// The page by a session that may have been kept, once more by a new one where that has ended.
  [[nodiscard]] std::string page(const Asked& asked);
  [[nodiscard]] ops::HttpAnswer act(Asked& asked);
  [[nodiscard]] ops::HttpAnswer sign_in(Asked& asked);
  [[nodiscard]] ops::HttpAnswer sign_out(const Asked& asked);
  /// The subject's page with `sentence` as the problem.
  [[nodiscard]] ops::HttpAnswer conflict(Asked& asked, const std::string& sentence);

  /// Sentences that a page shows after a form, once.
  std::string keep_notice(std::string sentence);
  std::string take_notice(const std::string& id);

  const Options& options_;
  const ops::HostNames names_;
  const std::string cookie_;  ///< a name for each consumer: browsers give all ports the same ones
  const std::string browser_cookie_;
  Access access_;
  Connections connections_;
  Samples samples_;
  Sampler sampler_;
  Replays replays_;
  std::mutex mutex_;
  std::deque<std::pair<std::string, std::string>> notices_;  // guarded by mutex_
};

}  // namespace pawl::dashboard
