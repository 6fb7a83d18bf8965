#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "redis/connection.hpp"
#include "redis/connector.hpp"
#include "redis/settings.hpp"

namespace pawl::redis {

/// Connections that are used by one at a time and kept for the next. As many are made as are used
/// at once. Any thread; outlives what it lent.
class Pool {
 public:
  explicit Pool(Settings settings) : connector_(std::move(settings)) {}
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  /// A connection for as long as this lives.
  class Borrowed {
   public:
    Borrowed(Pool& pool, std::unique_ptr<Connection> connection)
        : pool_(&pool), connection_(std::move(connection)) {}
    ~Borrowed() {
      if (connection_)
        pool_->give_back(std::move(connection_));
    }
    Borrowed(Borrowed&&) noexcept = default;
    Borrowed& operator=(Borrowed&&) = delete;
    Borrowed(const Borrowed&) = delete;
    Borrowed& operator=(const Borrowed&) = delete;

    Connection& operator*() const { return *connection_; }
    Connection* operator->() const { return connection_.get(); }

   private:
    Pool* pool_;
    std::unique_ptr<Connection> connection_;
  };

  /// One that is idle, else a new one. Throws Error.
  [[nodiscard]] Borrowed borrow();

  [[nodiscard]] std::size_t idle() const;

 private:
  [[nodiscard]] std::unique_ptr<Connection> take_idle();
  void give_back(std::unique_ptr<Connection> connection) noexcept;

  Connector connector_;
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Connection>> idle_;  // guarded by mutex_
};

}  // namespace pawl::redis
