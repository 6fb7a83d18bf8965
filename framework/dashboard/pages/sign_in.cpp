#include "dashboard/pages/pages.hpp"

#include <fmt/format.h>

#include "dashboard/pages/parts.hpp"

namespace pawl::dashboard {

std::string sign_in_html(const Frame& frame, const std::string& name) {
  if (!frame.may_sign_in) {
    return in_frame(frame, "Sign in",
                    "<p class=\"nothing\">Nobody may act by a token here: set "
                    "monitoring.actions_token.</p>",
                    false);
  }
  return in_frame(
      frame, "Sign in",
      fmt::format("<form class=\"sign-in\" method=\"post\" action=\"/sign-in\">"
                  "<p>Who signs in may act, and see keys and values of messages.</p>"
                  "<label>Your name <input name=\"name\" value=\"{}\" required maxlength=\"80\" "
                  "autofocus autocomplete=\"username\"></label>"
                  "<p class=\"meta\">It stands in the history beside what you do.</p>"
                  "<label>Token <input name=\"token\" type=\"password\" required "
                  "autocomplete=\"current-password\"></label>"
                  "<p class=\"meta\">monitoring.actions_token of the configuration.</p>"
                  "<button class=\"primary\">Sign in</button></form>\n",
                  escape(name)),
      false);
}

std::string message_html(const Frame& frame, const std::string& title) {
  return in_frame(frame, title, "<p><a href=\"/\">To the partitions</a></p>", false);
}

}  // namespace pawl::dashboard
