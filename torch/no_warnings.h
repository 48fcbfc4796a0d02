// torch warns about each kernel that is replaced; here that is done on purpose.
#pragma once

#include <c10/util/Exception.h>

namespace halstream_torch {

// Drops torch's warnings on the calling thread for a scope.
class NoWarnings {
  class Handler final : public c10::WarningHandler {
    void process(const c10::Warning&) override {}
  };
  Handler handler_;
  c10::WarningUtils::WarningHandlerGuard guard_{&handler_};
};

}  // namespace halstream_torch
