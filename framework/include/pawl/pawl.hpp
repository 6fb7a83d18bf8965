#pragma once

/// Everything a program that consumes with pawl needs.
#include "pawl/app.hpp"
#include "pawl/condition.hpp"
#include "pawl/config.hpp"
#include "pawl/consumer.hpp"
#include "pawl/defer.hpp"
#include "pawl/errors.hpp"
#include "pawl/handler.hpp"
#include "pawl/message.hpp"
#include "pawl/observer.hpp"
#include "pawl/options.hpp"
#include "pawl/publish.hpp"
#include "pawl/statements.hpp"
