#include "dashboard/pages/pages.hpp"

#include <fmt/format.h>

#include "dashboard/pages/parts.hpp"

namespace pawl::dashboard {

std::string sign_in_html(const Frame& frame, const std::string& name) {
  if (!frame.may_sign_in) {
    return in_frame(frame, "Sign in",
                    "<p class=\"nothing\">Actions are disabled. To enable them, set "
                    "monitoring.actions_token.</p>",
                    false);
  }
  return in_frame(
      frame, "Sign in",
      fmt::format("<form class=\"sign-in\" method=\"post\" action=\"/sign-in\">"
                  "<p>Signed-in users can act, and see keys and values of messages.</p>"
                  "<label>Your name <input name=\"name\" value=\"{}\" required maxlength=\"80\" "
                  "autofocus autocomplete=\"username\"></label>"
                  "<p class=\"meta\">The history records it with your actions.</p>"
                  "<label>Token <input name=\"token\" type=\"password\" required "
                  "autocomplete=\"current-password\"></label>"
                  "<p class=\"meta\">The value of monitoring.actions_token.</p>"
                  "<button class=\"primary\">Sign in</button></form>\n",
                  escape(name)),
      false);
}

std::string message_html(const Frame& frame, const std::string& title) {
  return in_frame(frame, title, "<p><a href=\"/\">Show partitions</a></p>", false);
}

}  // namespace pawl::dashboard
