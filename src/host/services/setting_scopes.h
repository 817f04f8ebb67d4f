// The host's scopes of settings: every setting passes through them.
#pragma once

#include "base/setting_scopes.h"

namespace ocltensor {

SettingScopes& setting_scopes();

}  // namespace ocltensor
