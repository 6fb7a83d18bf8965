#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "pawl/options.hpp"
#include "postgres/session.hpp"

namespace pawl::dashboard {

/// Sessions for pages, kept for the next one. As many are in use as pages are made at once, which
/// the HTTP server bounds. Any thread.
class Connections {
 public:
  explicit Connections(const Options& options) : options_(options) {}

  /// One page's session.
  class Lease {
   public:
    Lease(Connections& from, std::unique_ptr<postgres::Session> session, bool kept)
        : from_(from), session_(std::move(session)), kept_(kept) {}
    /// Gives it back, if nothing was thrown meanwhile.
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    [[nodiscard]] postgres::Session& operator*() const { return *session_; }
    /// It was made for an earlier page: the server may have ended it meanwhile.
    [[nodiscard]] bool kept() const { return kept_; }

   private:
    Connections& from_;
    std::unique_ptr<postgres::Session> session_;
    const bool kept_;
    const int exceptions_ = std::uncaught_exceptions();
  };

  /// Throws FatalError that says what to do.
  [[nodiscard]] Lease get();
  /// What ended one that was kept has ended the others, too.
  void forget_kept();

 private:
  static constexpr std::size_t kMostIdle = 2;

  const Options& options_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<postgres::Session>> idle_;  // guarded by mutex_
};

}  // namespace pawl::dashboard
